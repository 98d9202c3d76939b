-- DuckDB parses one JSON text faster than a VALUES list.
create or replace table labels as
select
    item[1] as address,
    ton_raw_workchain(item[1]) as workchain,
    ton_raw_account(item[1]) as account,
    item[2] as label,
    item[3] as category,
    item[4] as source
from (select unnest(from_json({labels}, '[["VARCHAR"]]')) as item);

create or replace table code_labels as
select
    item[1] as code,
    item[2] as label,
    item[3] as category,
    item[4] as source
from (select unnest(from_json({codes}, '[["VARCHAR"]]')) as item);

create or replace table stablecoins as
select
    address,
    ton_raw_workchain(address) as workchain,
    ton_raw_account(address) as account
from (select unnest(from_json({coins}, '["VARCHAR"]')) as address);

-- The newest row of every domain in the snapshot.
create or replace view latest_dns_records as
select *
from dns_records
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

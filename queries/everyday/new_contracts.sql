-- New contracts by code.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- chart: bar x=code_hash y=contracts
-- returns: code_hash, interfaces, contracts, first_time, last_time; most frequent first
select
    code_hash,
    any_value(interfaces) as interfaces,
    count(*) as contracts,
    min(time) as first_time,
    max(time) as last_time
from v_new_contracts
where in_days(time, $first, $last)
group by code_hash
order by
    contracts desc,
    code_hash
limit $limit

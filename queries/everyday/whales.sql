-- Accounts with the highest balances, now or at a time.
--
-- $at    timestamp = null  moment, UTC; null: the end of the lake
-- $limit integer   = 50    maximum number of rows
--
-- chart: bar x=address y=balance
-- returns: address, label, balance, time (of the last change); highest first; balance in TON
select
    address,
    label,
    balance,
    time
from balances_at(coalesce($at::timestamp, 'infinity'::timestamp))
where asset is null
order by
    balance_units desc,
    address
limit $limit

-- Contracts that use most gas.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- chart: bar x=address y=gas_used
-- returns: address, label, transactions, failed, gas_used, fees; most gas first; fees in TON
select
    ton_address(workchain, account) as address,
    label,
    count(*) as transactions,
    count(*) filter (where not success) as failed,
    sum(gas_used)::bigint as gas_used,
    sum(fee) as fees
from v_transactions
where in_days(time, $first, $last)
group by workchain, account, label
order by
    gas_used desc nulls last,
    address
limit $limit

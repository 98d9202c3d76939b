-- Transactions, fees and volume by day.
--
-- $first date = null  first UTC day; null: of the lake
-- $last  date = null  last UTC day; null: of the lake
--
-- chart: line x=date y=transactions,failed
-- returns: date, transactions, failed, fees, gas_used, ton_volume, jetton_transfers, swaps,
-- swap_volume_ton, new_contracts; oldest first; amounts in TON
select
    date,
    transactions,
    failed,
    fees,
    gas_used,
    ton_volume,
    jetton_transfers,
    swaps,
    swap_volume_ton,
    new_contracts
from v_daily
where in_range(date, $first, $last)
order by date

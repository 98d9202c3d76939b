-- DEX volume by pool and day.
--
-- Only successful swaps; volume counts those whose value in TON is known.
--
-- $dex   text = null     such as stonfi_v2 or dedust; null: every exchange
-- $first date = null     first UTC day; null: of the lake
-- $last  date = null     last UTC day; null: of the lake
-- $limit integer = 1000  maximum number of rows
--
-- chart: bar x=date y=volume_ton by=pool
-- returns: date, dex, pool, pool_label, swaps, traders, volume_ton; newest day first
select
    time::date as date,
    dex,
    pool,
    pool_label,
    count(*) as swaps,
    count(distinct sender) as traders,
    sum(value_ton) as volume_ton
from v_swaps
where success and equal_or_any(dex, $dex) and in_days(time, $first, $last)
group by date, dex, pool, pool_label
order by
    date desc,
    volume_ton desc nulls last,
    pool
limit $limit

-- Prices of a jetton in TON and US dollars, by hour or day.
--
-- From the swaps in the lake, like the view dex_prices; US dollars need [lake] stablecoins.
--
-- $jetton address   = null   jetton master; null: every jetton
-- $daily  boolean   = false  a row for each UTC day instead of each hour
-- $start  timestamp = null   first moment, UTC; the hour or day that it is in counts
-- $end    timestamp = null   last moment, UTC
-- $limit  integer   = 1000   maximum number of rows
-- $offset integer   = 0      rows to skip
--
-- chart: line x=time y=close by=symbol
-- returns: time, jetton, symbol, open, high, low, close, volume_ton, volume, trades, pools (of a
-- day: most in an hour), close_usd, ton_usd; newest first
with hours as (
    select
        if($daily, date_trunc('day', prices.time)::timestamp, prices.time) as bucket,
        prices.time,
        address,
        symbol,
        open,
        high,
        low,
        close,
        prices.volume_ton,
        volume,
        trades,
        pools,
        close_usd,
        usd
    from dex_prices as prices
    left join ton_prices on prices.time = ton_prices.time
    -- On the text, which prices are grouped by, so that trades of other jettons are not compared.
    where
        $jetton is null
        or address = ton_address(ton_workchain($jetton), ton_account($jetton))
)

select
    bucket as time,
    address as jetton,
    symbol,
    arg_min(open, time) as open,
    max(high) as high,
    min(low) as low,
    arg_max(close, time) as close,
    sum(volume_ton) as volume_ton,
    sum(volume) as volume,
    sum(trades)::bigint as trades,
    max(pools) as pools,
    arg_max(close_usd, time) as close_usd,
    arg_max(usd, time) as ton_usd
from hours
where
    bucket >= coalesce(
        date_trunc(if($daily, 'day', 'hour'), $start::timestamp)::timestamp, bucket
    )
    and bucket <= coalesce($end::timestamp, bucket)
group by bucket, address, symbol
order by
    bucket desc,
    address
limit $limit
offset $offset

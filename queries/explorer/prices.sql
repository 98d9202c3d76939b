-- The newest prices of jettons on exchanges, and of TON in US dollars.
--
-- $jettons text[]  raw addresses of jetton masters
--
-- returns: address (TON: of TON itself, if its price is known), ton (price of one unit in TON),
-- usd (NULL: unknown), utime (hour of the price)
with prices as materialized (
    select
        time,
        address,
        close,
        close_usd
    from dex_prices
)

select
    address,
    arg_max(close, time) as ton,
    arg_max(close_usd, time) as usd,
    epoch(max(time))::bigint as utime
from prices
where list_contains($jettons::text[], address)
group by address
union all
select
    'TON' as address,
    1 as ton,
    arg_max(close_usd / close, time) as usd,
    epoch(max(time))::bigint as utime
from prices
where close_usd is not null
having count(*) > 0
order by address

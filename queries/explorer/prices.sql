-- The newest prices of jettons on exchanges.
--
-- $jettons text[]  raw addresses of jetton masters
--
-- returns: address, ton (price of one unit in TON), usd (NULL: unknown), utime (hour of the price)
select
    address,
    arg_max(close, time) as ton,
    arg_max(close_usd, time) as usd,
    epoch(max(time))::bigint as utime
from dex_prices
where list_contains($jettons::text[], address)
group by address
order by address

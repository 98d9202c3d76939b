create or replace view ton_prices as
select
    time,
    median(1 / close) as usd,
    sum(volume_ton) as volume_ton,
    count(*) as stablecoins
from dex_prices
where address in (select address from stablecoins)
group by time;

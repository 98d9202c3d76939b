create or replace view ton_prices as
select *
from coin_prices('dex_prices');

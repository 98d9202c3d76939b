create or replace view prices_daily as
-- Named once, and so bound once.
with traded as not materialized (
    from dex_prices
),
dollars as (
    select
        time::date as date,
        arg_max(usd, time) as usd,
        sum(volume_ton) as volume_ton
    from coin_prices('traded')
    group by time::date
),
-- What pools of liquid staking gave for coins; those of other assets name it in asset2.
staked as (
    select
        ton_time(end_utime)::date as date,
        asset,
        sum(amount::double) / sum((details ->> '$.staking_data.tokens_minted')::double) as price,
        sum(amount::double) / 1e9 as volume_ton,
        count(*) as trades
    from actions
    where
        type = 'stake_deposit'
        and success
        and asset2 is null
        and amount >= 1000000000
        and (details ->> '$.staking_data.tokens_minted')::double > 0
    group by ton_time(end_utime)::date, asset
),
priced as (
    select
        time::date as date,
        address,
        symbol,
        'swaps' as source,
        arg_max(close, time) as price,
        sum(volume_ton) as volume_ton,
        sum(trades)::bigint as trades
    from traded
    group by time::date, address, symbol
    union all by name
    select
        staked.date,
        asset as address,
        symbol,
        'staking' as source,
        staked.price * pow(10, decimals - 9) as price,
        staked.volume_ton,
        staked.trades
    from staked
    join v_jettons on asset = address
    anti join traded
        on asset = traded.address and staked.date = traded.time::date
    where decimals is not null
)
select
    date,
    address as asset,
    ton_raw_workchain(address) as asset_workchain,
    ton_raw_account(address) as asset_id,
    symbol,
    price as price_ton,
    price * usd as price_usd,
    priced.volume_ton,
    trades,
    source
from priced
left join dollars using (date)
union all by name
select
    date,
    'TON' as symbol,
    1::double as price_ton,
    usd as price_usd,
    volume_ton,
    'swaps' as source
from dollars;

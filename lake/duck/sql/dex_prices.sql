create or replace view dex_prices as
with wrapped as (
    select address
    from labels
    where category = 'wrapped_ton'
),
direct as (
    select
        time,
        end_lt,
        trace_id,
        action_id,
        pool,
        case when ton_in then asset_out else asset_in end as jetton,
        case when ton_in then amount_in else amount_out end::double / 1e9 as ton,
        case when ton_in then amount_out else amount_in end::double as units
    from (
        select
            *,
            ton_time(end_utime) as time,
            asset_in is null or asset_in in (select address from wrapped) as ton_in,
            asset_out is null or asset_out in (select address from wrapped) as ton_out
        from dex_swaps
        where success and hops = 1 and pool is not null and amount_in > 0 and amount_out > 0
    )
    where ton_in <> ton_out
),
sized as (
    select
        direct.*,
        units / pow(10, decimals) as jettons,
        ton / jettons as price,
        symbol,
        workchain,
        account,
        count(*) over pool_day as pool_trades,
        sum(ton) over pool_day as pool_ton
    from direct
    join v_jettons on direct.jetton = v_jettons.address
    where ton >= 0.1 and decimals is not null
    window pool_day as (partition by jetton, pool, direct.time::date)
),
compared as (
    select
        *,
        median(price) over (
            partition by jetton
            order by end_lt, trace_id, action_id
            rows between 10 preceding and 10 following
        ) as typical
    from sized
    where pool_trades >= 3 and pool_ton >= 10
),
hourly as (
    select
        date_trunc('hour', time) as hour,
        jetton as address,
        workchain,
        account,
        symbol,
        arg_min(price, (end_lt, trace_id, action_id)) as open,
        max(price) as high,
        min(price) as low,
        arg_max(price, (end_lt, trace_id, action_id)) as close,
        sum(ton) as volume_ton,
        sum(jettons) as volume,
        count(*) as trades,
        count(distinct pool) as pools
    from compared
    where price between typical / 2 and typical * 2
    group by hour, address, workchain, account, symbol
),
dollars as (
    select
        hour,
        median(1 / close) as usd
    from hourly
    where address in (select address from stablecoins)
    group by hour
)
select
    hourly.hour as time,
    hourly.* exclude (hour),
    case when hourly.hour < dollars.hour + interval 1 day then close * usd end as close_usd
from hourly
asof left join dollars on hourly.hour >= dollars.hour;

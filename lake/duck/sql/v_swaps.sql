create or replace view v_swaps as
-- Named once, and so bound once.
with jettons as not materialized (
    from v_jettons
),
hourly as not materialized (
    from no_prices()
    union all by name -- part: price
        from dex_prices
),
orders as not materialized (
    -- What a pool received: swap of STON.fi (25938561, 6664de2a), DeDust (61ee542d), TONCO (a7fb58f8)
    -- and Swap.Coffee (c0ffee20).
    select
        trace_id,
        received.tx_hash,
        received.tx_lt,
        ton_address(destination_workchain, destination) as pool,
        try_cast(decoded ->> '$.query_id' as decimal(38, 0)) as query_id,
        coalesce(
            body_address(decoded, '$.addrs.ref_address'),
            body_address(decoded, '///ref_address'),
            body_address(decoded, '$.swap_params.referral_addr'),
            body_address(decoded, '$.params.referral')
        ) as referral
    from each_message('messages') as received
    join transaction_traces as traced
        on received.tx_hash = traced.hash and received.tx_lt = traced.lt
    left join message_bodies as bodies
        on received.body_hash = bodies.body_hash
        and received.mc_seqno = bodies.mc_seqno
        and not external_in
    where
        direction = 'in'
        and kind = 'int'
        and opcode in (630424929, 1717886506, 1643009069, -1476699912, -1056969184)
),
begun as (
    select
        swapping.trace_id,
        action_id,
        swapping.mc_seqno,
        arg_min(
            {
                'tx_hash': orders.tx_hash,
                'pool': pool,
                'query_id': query_id,
                'referral': referral
            },
            tx_lt
        ) as first_order
    from actions as swapping
    join orders on swapping.trace_id = orders.trace_id
    where type = 'jetton_swap' and list_contains(tx_hashes, orders.tx_hash)
    group by swapping.trace_id, action_id, swapping.mc_seqno
),
-- The time is computed below the joins, where a filter on it leaves few rows.
swapped as not materialized (
    select
        *,
        ton_time(end_utime) as time
    from dex_swaps
),
named as (
    select
        swaps.* exclude (pool),
        coalesce(first_order.pool, swaps.pool) as pool, -- part: order
        first_order.tx_hash, -- part: order
        first_order.query_id, -- part: order
        first_order.referral, -- part: order
        asset_in is null or labels_in.category is not distinct from 'wrapped_ton' as ton_in,
        asset_out is null or labels_out.category is not distinct from 'wrapped_ton' as ton_out,
        coalesce(jettons_in.symbol, case when ton_in then 'TON' end) as symbol_in,
        coalesce(jettons_out.symbol, case when ton_out then 'TON' end) as symbol_out,
        case when ton_in then 9 else jettons_in.decimals end as decimals_in,
        case when ton_out then 9 else jettons_out.decimals end as decimals_out
    from swapped as swaps
    left join begun -- part: order
        on swaps.trace_id = begun.trace_id
        and swaps.action_id = begun.action_id
        and swaps.mc_seqno = begun.mc_seqno
    left join jettons as jettons_in on asset_in = jettons_in.address
    left join jettons as jettons_out on asset_out = jettons_out.address
    left join labels as labels_in on asset_in = labels_in.address
    left join labels as labels_out on asset_out = labels_out.address
),
scaled as not materialized (
    select
        *,
        ton_amount(amount_in, decimals_in) as scaled_in,
        ton_amount(amount_out, decimals_out) as scaled_out
    from named
),
valued as not materialized (
    select
        scaled.*,
        case
            when ton_in then scaled_in
            when ton_out then scaled_out
            when scaled.time < prices.time + interval 1 day
                then ton_bounded(scaled_in::double * prices.close)
        end as value_ton
    from scaled
    asof left join hourly as prices
        on scaled.asset_in = prices.address and scaled.time >= prices.time
)
select
    valued.time,
    dex,
    success,
    pool, -- part: order
    ton_raw_workchain(pool) as pool_workchain, -- part: order
    ton_raw_account(pool) as pool_id, -- part: order
    pools.label as pool_label, -- part: order
    sender,
    ton_raw_workchain(sender) as sender_workchain,
    ton_raw_account(sender) as sender_id,
    senders.label as sender_label,
    asset_in,
    ton_raw_workchain(asset_in) as asset_in_workchain,
    ton_raw_account(asset_in) as asset_in_id,
    symbol_in,
    scaled_in as amount_in,
    amount_in as amount_in_units,
    asset_out,
    ton_raw_workchain(asset_out) as asset_out_workchain,
    ton_raw_account(asset_out) as asset_out_id,
    symbol_out,
    scaled_out as amount_out,
    amount_out as amount_out_units,
    value_ton, -- part: price
    case when valued.time < dollars.time + interval 1 day -- part: usd
        then ton_bounded(value_ton::double * dollars.usd) end as value_usd,
    hops,
    tx_hash, -- part: order
    query_id, -- part: order
    referral, -- part: order
    ton_raw_workchain(referral) as referral_workchain, -- part: order
    ton_raw_account(referral) as referral_id, -- part: order
    trace_id,
    action_id,
    end_lt as lt,
    mc_seqno,
    day
from valued
asof left join coin_prices('hourly') as dollars -- part: usd
    on valued.time >= dollars.time
left join labels as pools on pool = pools.address -- part: order
left join labels as senders on sender = senders.address;

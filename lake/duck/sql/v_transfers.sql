create or replace view v_transfers as
with prices as not materialized (
    from no_prices()
    union all by name -- part: price
        from dex_prices
),
tokens as not materialized (
    from moved_tokens(
        'jetton_transfers', 'nft_transfers', 'v_jettons', 'prices', 'nft_collections'
    )
),
received_tokens as not materialized (
    select
        tokens.*,
        received.body_hash, -- part: body
    from each_row('tokens') as tokens
    left join messages as received -- part: body
        on tokens.tx_lt = received.tx_lt
        and tokens.tx_account = received.tx_account
        and tokens.tx_workchain = received.tx_workchain
        and tokens.mc_seqno = received.mc_seqno -- many
        and tokens.day = received.day
        and received.direction = 'in'
),
moved as not materialized (
    from moved_coins('messages')
    union all by name -- part: token
        from moved_currencies('messages')
    union all by name -- part: token
        from received_tokens
),
traced as not materialized (
    select
        moved.*,
        trace_id, -- part: trace
        -- Not a filter on bodies alone: those of all times would be searched.
        case when moved.body_hash is not null then body_comment(decoded_opcode, decoded) end as comment, -- part: body
    from moved
    -- As in each_row, for the joins below; and few_traces, for one trace.
    semi join (select unnest([true, false]) as is_master) as either -- part: looked_up
        on (moved.tx_workchain = -1) = is_master
    left join message_bodies as bodies -- part: body
        on moved.mc_seqno = bodies.mc_seqno
        and moved.body_hash = bodies.body_hash -- bounded
        and moved.day = bodies.day -- bounded
        and not external_in
    left join every_trace('transaction_traces') as traced -- part: trace
        on moved.tx_lt = traced.lt
        and moved.tx_account = traced.account
        and moved.tx_workchain = traced.workchain
        and moved.mc_seqno = traced.mc_seqno -- many
        and moved.day = traced.day
),
named as not materialized (
    select
        ends.*,
        senders.label as sender_label, -- part: label
        recipients.label as recipient_label, -- part: label
    from with_addresses('traced') as ends
    left join label_of('labels') as senders -- part: label
        on sender_id = senders.account and sender_workchain = senders.workchain
    left join label_of('labels') as recipients -- part: label
        on recipient_id = recipients.account and recipient_workchain = recipients.workchain
)
select
    time,
    kind,
    sender,
    sender_workchain,
    sender_id,
    sender_label, -- part: label
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label, -- part: label
    asset,
    asset_workchain,
    asset_id,
    symbol,
    amount,
    amount_units,
    value_ton, -- part: price
    comment, -- part: body
    tx_hash,
    tx_lt as lt,
    trace_id, -- part: trace
    mc_seqno,
    day
from named;

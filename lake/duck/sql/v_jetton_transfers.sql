create or replace view v_jetton_transfers as
with moved as not materialized (
    select
        'transfer' as kind,
        transfers.source_workchain,
        transfers.source,
        transfers.destination_workchain,
        transfers.destination,
        jetton_workchain,
        jetton,
        amount,
        forward_ton_amount,
        transfers.workchain as tx_workchain,
        transfers.account as tx_account,
        transfers.lt as tx_lt,
        transfers.workchain,
        transfers.account,
        query_id,
        aborted,
        transfers.tx_time,
        transfers.tx_hash,
        case when received.body_hash is not null then body_comment(decoded_opcode, decoded) end as comment, -- part: body
        trace_id, -- part: trace
        transfers.mc_seqno,
        transfers.day
    from jetton_transfers as transfers
    -- As in each_move, for the joins below; and few_traces, for one trace.
    semi join (select unnest([true, false]) as ended) as either -- part: looked_up
        on coalesce(transfers.aborted, false) = ended
    left join messages as received -- part: body
        on transfers.lt = received.tx_lt
        and transfers.account = received.tx_account
        and transfers.workchain = received.tx_workchain
        and transfers.mc_seqno = received.mc_seqno -- many
        and transfers.day = received.day
        and received.direction = 'in'
    left join message_bodies as bodies -- part: body
        on transfers.mc_seqno = bodies.mc_seqno
        and received.body_hash = bodies.body_hash -- bounded
        and transfers.day = bodies.day -- bounded
        and not external_in
    left join every_trace('transaction_traces') as traced -- part: trace
        on transfers.lt = traced.lt
        and transfers.account = traced.account
        and transfers.workchain = traced.workchain
        and transfers.mc_seqno = traced.mc_seqno -- many
        and transfers.day = traced.day
    union all by name
    select
        'mint' as kind,
        wallets.owner_workchain as destination_workchain,
        wallets.owner as destination,
        jetton_workchain,
        jetton,
        received.tx_workchain,
        received.tx_account,
        received.tx_lt,
        wallets.workchain,
        wallets.account,
        try_cast(decoded ->> '$.amount.value' as decimal(38, 0)) as amount,
        try_cast(decoded ->> '$.forward_ton_amount.value' as decimal(38, 0)) as forward_ton_amount,
        try_cast(decoded ->> '$.query_id' as decimal(38, 0)) as query_id,
        coalesce(aborted, false) as aborted, -- part: success
        received.tx_time,
        received.tx_hash,
        case when received.body_hash is not null then body_comment(decoded_opcode, decoded) end as comment, -- part: body
        trace_id, -- part: trace
        received.mc_seqno,
        received.day
    from each_message('messages') as received
    join jetton_wallets as wallets
        on received.destination = wallets.account
        and received.destination_workchain = wallets.workchain
        and received.source = wallets.jetton
        and received.source_workchain = wallets.jetton_workchain
        and received.mc_seqno = wallets.mc_seqno
        and received.day = wallets.day
    join transactions -- part: success
        on received.tx_lt = transactions.lt
        and received.tx_account = transactions.account
        and received.tx_workchain = transactions.workchain
        and received.mc_seqno = transactions.mc_seqno
        and received.day = transactions.day
    join message_bodies as bodies
        on received.mc_seqno = bodies.mc_seqno
        and received.body_hash = bodies.body_hash -- bounded
        and received.day = bodies.day -- bounded
        and not external_in
    left join every_trace('transaction_traces') as traced -- part: trace
        on received.tx_lt = traced.lt
        and received.tx_account = traced.account
        and received.tx_workchain = traced.workchain
        and received.mc_seqno = traced.mc_seqno -- many
        and received.day = traced.day
    -- 178d4519, internal transfer of TEP-74, which the master itself sends to mint.
    where
        received.direction = 'in'
        and received.kind = 'int'
        and received.opcode = 395134233
        and decoded_opcode = 'jetton_internal_transfer'
),
prices as not materialized (
    from no_prices()
    union all by name -- part: price
        from dex_prices
),
valued as not materialized (
    from valued_jettons('moved', 'v_jettons', 'prices')
),
named as not materialized (
    select
        ends.*,
        senders.label as sender_label, -- part: label
        recipients.label as recipient_label, -- part: label
    from with_addresses('valued') as ends
    left join label_of('labels') as senders -- part: label
        on sender_id = senders.account and sender_workchain = senders.workchain
    left join label_of('labels') as recipients -- part: label
        on recipient_id = recipients.account and recipient_workchain = recipients.workchain
)
select
    time,
    kind,
    not aborted as success, -- part: success
    sender,
    sender_workchain,
    sender_id,
    sender_label, -- part: label
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label, -- part: label
    ton_address(jetton_workchain, jetton) as jetton,
    jetton_workchain,
    jetton as jetton_id,
    symbol,
    scaled as amount,
    amount as amount_units,
    value_ton, -- part: price
    comment, -- part: body
    ton_amount(forward_ton_amount, 9) as forward_amount,
    ton_address(workchain, account) as jetton_wallet,
    workchain as jetton_wallet_workchain,
    account as jetton_wallet_id,
    query_id,
    tx_hash,
    tx_lt as lt,
    trace_id, -- part: trace
    mc_seqno,
    day
from named;

create or replace view v_transfers as
with valued as not materialized (
    select
        ton_time(now) as time,
        source_workchain,
        messages.source,
        destination_workchain,
        destination,
        value,
        value_extra_currencies as currencies,
        body_comment(decoded_opcode, decoded) as comment,
        tx_hash,
        tx_lt as lt,
        trace_id,
        messages.mc_seqno,
        messages.day
    from each_message('messages') as messages
    left join transaction_traces as traced
        on messages.tx_account = traced.account
        and messages.tx_lt = traced.lt
        and messages.tx_workchain = traced.workchain
        and messages.mc_seqno = traced.mc_seqno
        and messages.day = traced.day
    left join message_bodies as bodies
        on messages.body_hash = bodies.body_hash
        and messages.mc_seqno = bodies.mc_seqno
        and messages.day = bodies.day
        and not external_in
    where direction = 'in' and kind = 'int'
),
transferred as not materialized (
    from transferred_jettons('jetton_transfers', 'messages', 'message_bodies')
),
moved as not materialized (
    select
        * exclude (value, currencies),
        'ton' as kind,
        null::varchar as asset,
        null::integer as asset_workchain,
        null::blob as asset_id,
        'TON' as symbol,
        ton_coins(value)::decimal(38, 9) as amount,
        value::decimal(38, 0) as amount_units,
        ton_coins(value)::decimal(38, 9) as value_ton
    from valued
    where value > 0
    union all by name
    select
        * exclude (value, currencies),
        'extra_currency' as kind,
        unnest(json_keys(currencies)) as asset,
        try_cast(currencies ->> asset as decimal(38, 0)) as amount_units
    from valued
    where currencies is not null
    union all by name
    select
        time,
        sender_workchain as source_workchain,
        sender_id as source,
        recipient_workchain as destination_workchain,
        recipient_id as destination,
        comment,
        tx_hash,
        lt,
        trace_id,
        mc_seqno,
        day,
        'jetton' as kind,
        jetton as asset,
        jetton_workchain as asset_workchain,
        jetton_id as asset_id,
        symbol,
        amount,
        amount_units,
        value_ton
    from shown_jettons('transferred', 'transaction_traces', 'v_jettons', 'dex_prices')
    where success
    union all by name
    select
        ton_time(transfers.now) as time,
        old_owner_workchain as source_workchain,
        old_owner as source,
        new_owner_workchain as destination_workchain,
        new_owner as destination,
        body_comment(decoded_opcode, decoded) as comment,
        transfers.tx_hash,
        transfers.lt,
        trace_id,
        transfers.mc_seqno,
        transfers.day,
        'nft' as kind,
        ton_address(transfers.workchain, transfers.account) as asset,
        transfers.workchain as asset_workchain,
        transfers.account as asset_id,
        collections.content ->> '$.name' as symbol,
        1 as amount,
        1 as amount_units
    from each_move('nft_transfers') as transfers
    left join transaction_traces as traced
        on transfers.account = traced.account
        and transfers.lt = traced.lt
        and transfers.workchain = traced.workchain
        and transfers.mc_seqno = traced.mc_seqno
        and transfers.day = traced.day
    left join latest_nft_collections as collections
        on transfers.collection = collections.account
        and transfers.collection_workchain = collections.workchain
    left join messages as received
        on transfers.account = received.tx_account
        and transfers.lt = received.tx_lt
        and transfers.workchain = received.tx_workchain
        and transfers.mc_seqno = received.mc_seqno
        and transfers.day = received.day
        and received.direction = 'in'
    left join message_bodies as bodies
        on received.body_hash = bodies.body_hash
        and received.mc_seqno = bodies.mc_seqno
        and received.day = bodies.day
        and not external_in
    where not aborted
)
select
    time,
    kind,
    sender,
    sender_workchain,
    sender_id,
    sender_label,
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label,
    asset,
    asset_workchain,
    asset_id,
    symbol,
    amount,
    amount_units,
    value_ton,
    comment,
    tx_hash,
    lt,
    trace_id,
    mc_seqno,
    day
from with_ends('moved');

create or replace view v_jetton_transfers as
with moved as not materialized (
    from transferred_jettons('jetton_transfers', 'messages', 'message_bodies')
    union all by name
    select
        'mint' as kind,
        wallets.owner_workchain as destination_workchain,
        wallets.owner as destination,
        jetton_workchain,
        jetton,
        try_cast(decoded ->> '$.amount.value' as decimal(38, 0)) as amount,
        body_comment(decoded_opcode, decoded) as comment,
        try_cast(decoded ->> '$.forward_ton_amount.value' as decimal(38, 0)) as forward_ton_amount,
        wallets.workchain,
        wallets.account,
        try_cast(decoded ->> '$.query_id' as decimal(38, 0)) as query_id,
        coalesce(aborted, false) as aborted,
        received.now,
        received.tx_hash,
        received.tx_lt as lt,
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
    join transactions
        on received.tx_account = transactions.account
        and received.tx_lt = transactions.lt
        and received.tx_workchain = transactions.workchain
        and received.mc_seqno = transactions.mc_seqno
        and received.day = transactions.day
    join message_bodies as bodies
        on received.body_hash = bodies.body_hash
        and received.mc_seqno = bodies.mc_seqno
        and received.day = bodies.day
    -- 178d4519, internal transfer of TEP-74, which the master itself sends to mint.
    where
        received.direction = 'in'
        and received.kind = 'int'
        and received.opcode = 395134233
        and not external_in
        and decoded_opcode = 'jetton_internal_transfer'
)
from shown_jettons('moved', 'transaction_traces', 'v_jettons', 'dex_prices');

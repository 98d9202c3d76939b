create or replace view v_transfers as
with coins as not materialized (
    from each_message('messages')
    where direction = 'in' and kind = 'int'
),
tokens as not materialized (
    select
        'jetton' as kind,
        now,
        source_workchain,
        source,
        destination_workchain,
        destination,
        jetton_workchain as asset_workchain,
        jetton as asset_id,
        symbol,
        scaled as amount,
        amount as amount_units,
        value_ton,
        workchain,
        account,
        lt,
        tx_hash,
        mc_seqno,
        day
    from valued_jettons('jetton_transfers', 'v_jettons', 'dex_prices')
    where not aborted
    union all by name
    select
        'nft' as kind,
        now,
        old_owner_workchain as source_workchain,
        old_owner as source,
        new_owner_workchain as destination_workchain,
        new_owner as destination,
        transfers.workchain as asset_workchain,
        transfers.account as asset_id,
        collections.content ->> '$.name' as symbol,
        1 as amount,
        1 as amount_units,
        transfers.workchain,
        transfers.account,
        transfers.lt,
        tx_hash,
        transfers.mc_seqno,
        transfers.day
    from each_move('nft_transfers') as transfers
    left join latest_nft_collections as collections
        on transfers.collection = collections.account
        and transfers.collection_workchain = collections.workchain
    where not aborted
),
moved as not materialized (
    select
        'ton' as kind,
        now,
        source_workchain,
        source,
        destination_workchain,
        destination,
        null::varchar as asset,
        'TON' as symbol,
        ton_coins(value)::decimal(38, 9) as amount,
        value::decimal(38, 0) as amount_units,
        ton_coins(value)::decimal(38, 9) as value_ton,
        tx_workchain,
        tx_account,
        tx_lt,
        tx_hash,
        body_hash,
        mc_seqno,
        day
    from coins
    where value > 0
    union all by name
    select
        'extra_currency' as kind,
        now,
        source_workchain,
        source,
        destination_workchain,
        destination,
        unnest(json_keys(value_extra_currencies)) as asset,
        try_cast(value_extra_currencies ->> asset as decimal(38, 0)) as amount_units,
        tx_workchain,
        tx_account,
        tx_lt,
        tx_hash,
        body_hash,
        mc_seqno,
        day
    from coins
    where value_extra_currencies is not null
    union all by name
    select
        tokens.* exclude (workchain, account, lt, tx_hash, mc_seqno, day),
        ton_address(asset_workchain, asset_id) as asset,
        tokens.workchain as tx_workchain,
        tokens.account as tx_account,
        tokens.lt as tx_lt,
        tokens.tx_hash,
        received.body_hash,
        tokens.mc_seqno,
        tokens.day
    from tokens
    left join messages as received
        on tokens.account = received.tx_account
        and tokens.lt = received.tx_lt
        and tokens.workchain = received.tx_workchain
        and tokens.mc_seqno = received.mc_seqno
        and tokens.day = received.day
        and received.direction = 'in'
),
traced as not materialized (
    from with_trace_and_comment('moved', 'transaction_traces', 'message_bodies')
)
select
    ton_time(now) as time,
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
    tx_lt as lt,
    trace_id,
    mc_seqno,
    day
from with_ends('traced');

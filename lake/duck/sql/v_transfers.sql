create or replace view v_transfers as
with moved as not materialized (
    select
        ton_time(now) as time,
        ton_address(source_workchain, messages.source) as sender,
        source_workchain as sender_workchain,
        messages.source as sender_id,
        senders.label as sender_label,
        ton_address(destination_workchain, destination) as recipient,
        destination_workchain as recipient_workchain,
        destination as recipient_id,
        recipients.label as recipient_label,
        value,
        value_extra_currencies as currencies,
        comment,
        tx_hash,
        tx_lt as lt,
        mc_seqno,
        day
    from (
        select *
        from messages
        where
            direction = 'in'
            and kind = 'int'
            and (value > 0 or value_extra_currencies is not null)
    ) as messages
    left join v_comments on messages.body_hash = v_comments.body_hash
    left join labels as senders
        on messages.source = senders.account and source_workchain = senders.workchain
    left join labels as recipients
        on destination = recipients.account and destination_workchain = recipients.workchain
)
select
    time,
    'ton' as kind,
    sender,
    sender_workchain,
    sender_id,
    sender_label,
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label,
    null::varchar as asset,
    null::integer as asset_workchain,
    null::blob as asset_id,
    'TON' as symbol,
    ton_coins(value)::decimal(38, 9) as amount,
    value::decimal(38, 0) as amount_units,
    ton_coins(value)::decimal(38, 9) as value_ton,
    comment,
    tx_hash,
    lt,
    mc_seqno,
    day
from moved
where value > 0
union all
select
    time,
    'extra_currency' as kind,
    sender,
    sender_workchain,
    sender_id,
    sender_label,
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label,
    currency as asset,
    null as asset_workchain,
    null as asset_id,
    null as symbol,
    null as amount,
    try_cast(currencies ->> currency as decimal(38, 0)) as amount_units,
    null as value_ton,
    comment,
    tx_hash,
    lt,
    mc_seqno,
    day
from (
    select
        *,
        unnest(json_keys(currencies)) as currency
    from moved
    where currencies is not null
)
union all
select
    time,
    'jetton' as kind,
    sender,
    sender_workchain,
    sender_id,
    sender_label,
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label,
    jetton as asset,
    jetton_workchain as asset_workchain,
    jetton_id as asset_id,
    symbol,
    amount,
    amount_units,
    value_ton,
    comment,
    tx_hash,
    lt,
    mc_seqno,
    day
from v_jetton_transfers
where success
union all
select
    ton_time(now) as time,
    'nft' as kind,
    ton_address(old_owner_workchain, old_owner) as sender,
    old_owner_workchain as sender_workchain,
    old_owner as sender_id,
    senders.label as sender_label,
    ton_address(new_owner_workchain, new_owner) as recipient,
    new_owner_workchain as recipient_workchain,
    new_owner as recipient_id,
    recipients.label as recipient_label,
    ton_address(transfers.workchain, transfers.account) as asset,
    transfers.workchain as asset_workchain,
    transfers.account as asset_id,
    collections.content ->> '$.name' as symbol,
    1 as amount,
    1 as amount_units,
    null as value_ton,
    comment,
    transfers.tx_hash,
    transfers.lt,
    transfers.mc_seqno,
    transfers.day
from nft_transfers as transfers
left join latest_nft_collections as collections
    on transfers.collection = collections.account
    and transfers.collection_workchain = collections.workchain
left join labels as senders
    on old_owner = senders.account and old_owner_workchain = senders.workchain
left join labels as recipients
    on new_owner = recipients.account and new_owner_workchain = recipients.workchain
left join (
    select
        tx_hash,
        v_comments.comment
    from messages
    join v_comments on messages.body_hash = v_comments.body_hash
    where direction = 'in' and kind = 'int' and opcode_name = 'nft_transfer'
) as commented
    on transfers.tx_hash = commented.tx_hash
where not aborted;

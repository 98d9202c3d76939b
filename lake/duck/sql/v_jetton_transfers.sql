create or replace view v_jetton_transfers as
with named as (
    select
        transfers.*,
        ton_time(now) as time,
        symbol,
        decimals,
        ton_scaled(amount, decimals) as scaled,
        comment
    from jetton_transfers as transfers
    left join v_jettons
        on transfers.jetton = v_jettons.account
        and transfers.jetton_workchain = v_jettons.workchain
    left join (
        select
            tx_hash,
            v_comments.comment
        from messages
        join v_comments on messages.body_hash = v_comments.body_hash
        where direction = 'in' and kind = 'int' and opcode_name = 'jetton_transfer'
    ) as commented
        on transfers.tx_hash = commented.tx_hash
)
select
    named.time,
    not aborted as success,
    ton_address(source_workchain, named.source) as sender,
    source_workchain as sender_workchain,
    named.source as sender_id,
    senders.label as sender_label,
    ton_address(destination_workchain, destination) as recipient,
    destination_workchain as recipient_workchain,
    destination as recipient_id,
    recipients.label as recipient_label,
    ton_address(jetton_workchain, jetton) as jetton,
    jetton_workchain,
    jetton as jetton_id,
    named.symbol,
    scaled as amount,
    amount as amount_units,
    case
        when named.time < prices.time + interval 1 day
            then try_cast(scaled::double * prices.close as decimal(38, 9))
    end as value_ton,
    comment,
    ton_coins(forward_ton_amount)::decimal(38, 9) as forward_amount,
    ton_address(named.workchain, named.account) as jetton_wallet,
    named.workchain as jetton_wallet_workchain,
    named.account as jetton_wallet_id,
    query_id,
    tx_hash,
    lt,
    mc_seqno,
    day
from named
asof left join dex_prices as prices
    on named.jetton = prices.account
    and named.jetton_workchain = prices.workchain
    and named.time >= prices.time
left join labels as senders
    on named.source = senders.account and source_workchain = senders.workchain
left join labels as recipients
    on destination = recipients.account and destination_workchain = recipients.workchain;

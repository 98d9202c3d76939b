create or replace view v_jetton_transfers as
with named as not materialized (
    select
        transfers.*,
        ton_time(now) as time,
        symbol,
        ton_scaled(amount, decimals) as scaled,
        comment
    from each_move('jetton_transfers') as transfers
    left join v_jettons
        on transfers.jetton = v_jettons.account
        and transfers.jetton_workchain = v_jettons.workchain
    -- 0f8a7ea5, transfer of TEP-74.
    left join comments_of(260734629, 'messages', 'message_bodies') as commented
        on transfers.tx_hash = commented.tx_hash and transfers.lt = commented.tx_lt
)
select
    named.time,
    not aborted as success,
    sender,
    sender_workchain,
    sender_id,
    sender_label,
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label,
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
from with_ends('named') as named
asof left join dex_prices as prices
    on named.jetton = prices.account
    and named.jetton_workchain = prices.workchain
    and named.time >= prices.time;

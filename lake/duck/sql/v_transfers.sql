create or replace view v_transfers as
with tokens as not materialized (
    from moved_tokens(
        'jetton_transfers', 'nft_transfers', 'v_jettons', 'dex_prices', 'latest_nft_collections'
    )
),
moved as not materialized (
    from moved_coins('messages')
    union all by name
    from with_body('tokens', 'messages')
),
traced as not materialized (
    from with_trace_and_comment('moved', 'transaction_traces', 'message_bodies')
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
    tx_lt as lt,
    trace_id,
    mc_seqno,
    day
from with_ends('traced');

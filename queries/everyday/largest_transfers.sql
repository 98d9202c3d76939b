-- The largest transfers by value in TON.
--
-- Transfers whose value is not known, and NFTs, are left out.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- returns: time, kind, sender, sender_label, recipient, recipient_label, symbol, amount, value_ton,
-- comment, tx_hash
with moves as not materialized (
    from moved_assets(
        'messages',
        'jetton_transfers',
        'nft_transfers',
        'v_jettons',
        'dex_prices',
        'nft_collections'
    )
),

largest as (
    from moves
    where value_ton is not null and in_days(time, $first, $last)
    order by
        value_ton desc,
        tx_lt,
        tx_hash
    limit $limit
),

received as not materialized (
    from with_body('largest', 'messages')
),

commented as not materialized (
    from with_trace_and_comment('received', 'transaction_traces', 'message_bodies')
)

select
    time,
    kind,
    sender,
    sender_label,
    recipient,
    recipient_label,
    symbol,
    amount,
    value_ton,
    comment,
    tx_hash
from with_ends('commented')
order by
    value_ton desc,
    tx_lt,
    tx_hash

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
from v_transfers
where value_ton is not null and in_range(time::date, $first, $last)
order by
    value_ton desc,
    lt,
    tx_hash
limit $limit

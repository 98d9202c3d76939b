-- The newest jetton transfers with a comment.
--
-- $jetton address = null  jetton master; null: any
-- $words  text    = null  part of the comment, in any case; null: any
-- $limit  integer = 100   maximum number of rows
--
-- returns: time, sender, recipient, jetton, symbol, amount, comment, tx_hash
select
    time,
    sender,
    recipient,
    jetton,
    symbol,
    amount,
    comment,
    tx_hash
from v_jetton_transfers
where
    comment is not null
    and success
    and kind = 'transfer'
    and ($jetton is null or (
        jetton_id = ton_account($jetton) and jetton_workchain = ton_workchain($jetton)
    ))
    and ($words is null or contains(lower(comment), lower($words)))
order by
    time desc,
    lt desc,
    tx_hash
limit $limit

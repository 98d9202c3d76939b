-- Transactions of an account, newest first, from one on backwards.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $lt        bigint = 9223372036854775807  the newest wanted
-- $rows      bigint  most rows
--
-- returns: transactions
select
    t.workchain,
    t.account,
    t.lt,
    t.hash,
    t.now,
    t.mc_seqno,
    t.prev_trans_lt,
    t.prev_trans_hash,
    t.total_fees,
    t.storage_fees_collected,
    t.boc
from transactions as t
where
    t.workchain = $workchain
    and t.account = $account
    and t.lt <= $lt
order by t.lt desc
limit $rows

-- Transactions of a block by account and logical time, after a page cursor.
--
-- $workchain     integer  workchain of the block
-- $shard         bigint   its shard
-- $seqno         bigint   its seqno
-- $mc_seqno      bigint   masterchain block that commits it
-- $after_account blob = null  account of the last transaction seen
-- $after_lt      bigint = 0   its logical time
-- $rows          bigint   maximum number of rows
--
-- returns: ids of transactions
select
    t.workchain,
    t.account,
    t.lt,
    t.hash
from transactions as t
where
    t.workchain = $workchain
    and t.shard = $shard
    and t.block_seqno = $seqno
    and t.mc_seqno = $mc_seqno
    and (
        $after_account::blob is null
        or t.account > $after_account::blob
        or (t.account = $after_account::blob and t.lt > $after_lt)
    )
order by
    t.account,
    t.lt
limit $rows

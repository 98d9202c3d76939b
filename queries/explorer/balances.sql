-- The balance of an account after each of the newest blocks that touched it.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $limit     integer  maximum number of rows
--
-- returns: utime, balance in nanoton; newest first
select
    utime,
    balance
from account_states
where workchain = $workchain and account = $account
order by
    mc_seqno desc,
    block_seqno desc
limit $limit

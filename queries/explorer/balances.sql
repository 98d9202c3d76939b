-- The balance of an account after each block that touched it, the newest blocks alone.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $limit     integer  most rows
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

-- The state of an account at a masterchain block.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $mc_seqno  bigint   masterchain block
--
-- returns: the state; no row if the lake has none up to the block
select
    mc_seqno,
    hash,
    account_status,
    balance,
    extra_currencies,
    last_trans_lt,
    last_trans_hash,
    frozen_hash,
    code_hash,
    data_hash
from account_states
where
    workchain = $workchain
    and account = $account
    and mc_seqno <= $mc_seqno
order by
    mc_seqno desc,
    block_seqno desc
limit 1

-- The states of an account at several masterchain blocks.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $mc_seqnos bigint[] masterchain blocks
--
-- returns: the state at each block, at_mc_seqno; no row for a block before the first state
select
    moments.at_mc_seqno,
    states.mc_seqno,
    states.hash,
    states.account_status,
    states.balance,
    states.extra_currencies,
    states.last_trans_lt,
    states.last_trans_hash,
    states.frozen_hash,
    states.code_hash,
    states.data_hash
from (select unnest($mc_seqnos::bigint[]) as at_mc_seqno) as moments
asof join (
    from account_states
    where
        workchain = $workchain
        and account = $account
    qualify row_number() over (partition by mc_seqno order by block_seqno desc) = 1
) as states
    on moments.at_mc_seqno >= states.mc_seqno

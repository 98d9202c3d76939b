-- The states of some accounts at a masterchain block; later accounts are absent.
--
-- $workchains  integer[]         workchains of the accounts
-- $accounts    blob[]            account ids
-- $mc_seqno    bigint    = null  state at this masterchain block; null: newest
--
-- returns: the account and its state; by workchain and account
select
    workchain,
    account,
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
    ($mc_seqno is null or mc_seqno <= $mc_seqno)
    and in_pairs(workchain, account, $workchains, $accounts)
qualify row_number() over (
    partition by
        workchain,
        account
    order by
        mc_seqno desc,
        block_seqno desc
) = 1
order by
    workchain,
    account

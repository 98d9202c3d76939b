-- The states of some accounts at a masterchain block; later accounts are absent.
--
-- $workchains  integer[]         workchains of the accounts
-- $accounts    blob[]            account ids
-- $mc_seqno    bigint    = null  state at this masterchain block; null: newest
--
-- returns: the account and its state; by workchain and account
with named as (
    from account_states
    where in_pairs(workchain, account, $workchains, $accounts)
)

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
from states_as_of('named', $mc_seqno)
order by
    workchain,
    account

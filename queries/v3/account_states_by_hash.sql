-- Account states by state hash.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     accounts, aligned with the hashes
-- $hashes     blob[]     hashes of account cells
--
-- returns: the account, the hash of its state, and the state
select
    workchain,
    account,
    hash,
    account_status,
    balance,
    extra_currencies,
    frozen_hash,
    code_hash,
    data_hash
from account_states
where (workchain, account, hash) in (
    select
        unnest($workchains::integer[]),
        unnest($accounts::blob[]),
        unnest($hashes::blob[])
)

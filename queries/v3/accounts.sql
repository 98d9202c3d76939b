-- The newest states of some accounts; accounts that the lake does not know are absent.
--
-- $workchains  integer[]  workchains of the accounts
-- $accounts    blob[]     account ids
--
-- returns: the account and its newest state; by workchain and account
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
where (workchain, account) in (
    select
        unnest($workchains::integer[]),
        unnest($accounts::blob[])
)
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

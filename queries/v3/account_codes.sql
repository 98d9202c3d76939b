-- The newest codes of some accounts; accounts without a state are absent.
--
-- $workchains  integer[]  workchains of the accounts
-- $accounts    blob[]     account ids
--
-- returns: workchain, account, code_hash; in no order
select
    workchain,
    account,
    code_hash
from account_states
where in_pairs(workchain, account, $workchains, $accounts)
qualify row_number() over (
    partition by
        workchain,
        account
    order by
        mc_seqno desc,
        block_seqno desc
) = 1

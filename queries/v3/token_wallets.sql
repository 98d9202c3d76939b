-- The newest state of the given accounts that are jetton wallets.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account and columns of its newest state; by account
select
    workchain,
    account,
    balance,
    owner_workchain,
    owner,
    jetton_workchain,
    jetton
from latest_of('jetton_wallets', $workchains, $accounts)
order by
    workchain,
    account

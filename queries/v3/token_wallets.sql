-- What jetton wallets among some accounts hold.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account, and these of its columns in the newest state; by account
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

-- What jetton masters among some accounts say of themselves.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account, and these of its columns in the newest state; by account
select
    workchain,
    account,
    content
from latest_of('jetton_masters', $workchains, $accounts)
order by
    workchain,
    account

-- What NFT collections among some accounts say of themselves.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account, and these of its columns in the newest state; by account
select
    workchain,
    account,
    content
from latest_of('nft_collections', $workchains, $accounts)
order by
    workchain,
    account

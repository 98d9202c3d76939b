-- The content of the given accounts that are NFT collections.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account and columns of its newest state; by account
select
    workchain,
    account,
    content
from latest_of('nft_collections', $workchains, $accounts)
order by
    workchain,
    account

-- The content of the given accounts that are NFT items.
--
-- $workchains integer[]  workchains of the accounts
-- $accounts   blob[]     account ids
--
-- returns: the account and columns of its newest state; by account
select
    workchain,
    account,
    item_index,
    content
from latest_of('nft_items', $workchains, $accounts)
order by
    workchain,
    account

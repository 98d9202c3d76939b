-- Every account that is a token contract of any kind.
--
-- returns: the kind, which is the name of its table, and the account; each once
select distinct
    'jetton_wallets' as token,
    workchain,
    account
from jetton_wallets
union all
select distinct
    'jetton_masters',
    workchain,
    account
from jetton_masters
union all
select distinct
    'nft_collections',
    workchain,
    account
from nft_collections
union all
select distinct
    'nft_items',
    workchain,
    account
from nft_items

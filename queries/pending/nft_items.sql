-- All recorded states of some accounts as NFT items.
--
-- $accounts blob[]  account ids, in any workchain
--
-- returns: the columns of nft_items that classification reads; in no order
select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    init,
    item_index,
    collection_workchain,
    collection,
    owner_workchain,
    owner,
    content
from nft_items
where in_list(account, $accounts::blob[])

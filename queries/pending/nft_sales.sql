-- All recorded states of some accounts as NFT sale contracts.
--
-- $accounts blob[]  account ids, in any workchain
--
-- returns: the columns of nft_sales that classification reads; in no order
select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    kind,
    nft_workchain,
    nft,
    nft_owner_workchain,
    nft_owner,
    marketplace_workchain,
    marketplace,
    created_at,
    details
from nft_sales
where in_list(account, $accounts::blob[])

-- NFT sale contracts at a masterchain block; by address.
--
-- $workchains integer[] = []    workchains of the contracts
-- $accounts   blob[]    = []    contracts; empty: any
-- $mc_seqno   bigint    = null  state at this masterchain block; null: newest
-- $limit      integer           maximum number of rows
-- $offset     integer   = 0     rows to skip
--
-- returns: the columns of nft_sales, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from nft_sales
    where in_pairs_or_any(workchain, account, $workchains, $accounts)
)

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
    details,
    first_lt
from matching_as_of('nft_sales', 'matching', $mc_seqno)
order by
    workchain,
    account
limit $limit
offset $offset

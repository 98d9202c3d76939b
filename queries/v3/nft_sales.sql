-- Contracts that sell NFTs, at a masterchain block; by address.
--
-- $workchains integer[]         workchains of the contracts; none: any
-- $accounts   blob[]            contracts
-- $mc_seqno   bigint    = null  as of this masterchain block; null: the newest
-- $limit      integer           most rows
-- $offset     integer   = 0     rows to pass over
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

-- NFT collections at a masterchain block, ordered by first appearance.
--
-- $workchains       integer[] = []    workchains of the collections
-- $accounts         blob[]    = []    collections; empty: any
-- $owner_workchains integer[] = []    workchains of the owners
-- $owners           blob[]    = []    owners; empty: any
-- $mc_seqno         bigint    = null  state at this masterchain block; null: newest
-- $limit            integer           maximum number of rows
-- $offset           integer   = 0     rows to skip
--
-- returns: the columns of nft_collections, first_lt; in order
with matching as (
    select
        workchain,
        account,
        mc_seqno
    from nft_collections
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and in_pairs_or_any(owner_workchain, owner, $owner_workchains, $owners)
)

select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    next_item_index,
    owner_workchain,
    owner,
    content,
    first_lt
from matching_as_of('nft_collections', 'matching', $mc_seqno)
order by
    first_lt,
    workchain,
    account
limit $limit
offset $offset

-- NFT items at a masterchain block; an item on sale may count as its seller's.
--
-- $workchains            integer[] = []     workchains of the items
-- $accounts              blob[]    = []     items; empty: any
-- $collection_workchains integer[] = []     workchains of the collections
-- $collections           blob[]    = []     collections; empty: any
-- $owner_workchains      integer[] = []     workchains of the owners
-- $owners                blob[]    = []     owners; empty: any
-- $indexes               text[]    = []     decimal indexes; empty: any
-- $include_on_sale       boolean   = false  include items that the owners have on sale
-- $by_lt                 boolean   = false  order by last transaction, newest first
-- $by_owner              boolean   = false  order by owner, collection and index
-- $by_collection         boolean   = false  order by collection and index
-- $by_first              boolean   = false  order by first appearance
-- $mc_seqno              bigint    = null   state at this masterchain block; null: newest
-- $limit                 integer            maximum number of rows
-- $offset                integer   = 0      rows to skip
--
-- returns: the columns of nft_items, first_lt; in order
with contracts as (
    select
        workchain,
        account,
        mc_seqno,
        nft_workchain,
        nft,
        nft_owner_workchain,
        nft_owner
    from nft_sales
    where kind <> 'telemint'
),

sales as (
    select
        workchain,
        account,
        nft_workchain,
        nft,
        nft_owner_workchain,
        nft_owner
    from as_of('contracts', $mc_seqno)
    where
        $include_on_sale
        and in_pairs(nft_owner_workchain, nft_owner, $owner_workchains, $owners)
),

matching as (
    select
        workchain,
        account,
        mc_seqno
    from nft_items
    where
        in_pairs_or_any(workchain, account, $workchains, $accounts)
        and in_pairs_or_any(collection_workchain, collection, $collection_workchains, $collections)
        and (len($indexes::text[]) = 0 or list_contains($indexes::text[], item_index))
        and (
            len($owners::blob[]) = 0
            or in_pairs(owner_workchain, owner, $owner_workchains, $owners)
            or (owner_workchain, owner, workchain, account) in (
                select
                    workchain,
                    account,
                    nft_workchain,
                    nft
                from sales
            )
        )
)

select
    states.workchain,
    states.account,
    states.mc_seqno,
    states.lt,
    states.utime,
    states.code_hash,
    states.data_hash,
    states.init,
    states.item_index,
    states.collection_workchain,
    states.collection,
    states.owner_workchain,
    states.owner,
    states.content,
    states.first_lt
from matching_as_of('nft_items', 'matching', $mc_seqno) as states
left join sales on
    states.owner_workchain = sales.workchain
    and states.owner = sales.account
    and states.workchain = sales.nft_workchain
    and states.account = sales.nft
order by
    case when $by_lt then lt end desc,
    case when $by_owner then coalesce(sales.nft_owner_workchain, owner_workchain) end,
    case when $by_owner then coalesce(sales.nft_owner, owner) end,
    case when $by_owner or $by_collection then collection_workchain end,
    case when $by_owner or $by_collection then collection end,
    case when $by_owner or $by_collection then length(item_index) end,
    case when $by_owner or $by_collection then item_index end,
    case when $by_first then first_lt end,
    states.workchain,
    states.account
limit $limit
offset $offset

-- NFT items at a masterchain block; an item that a contract sells is that of its seller, too.
--
-- $workchains            integer[]          workchains of the items; none: any
-- $accounts              blob[]             items
-- $collection_workchains integer[]          workchains of the collections; none: any
-- $collections           blob[]             collections
-- $owner_workchains      integer[]          workchains of the owners; none: any
-- $owners                blob[]             owners
-- $indexes               text[]             decimal indexes; none: any
-- $include_on_sale       boolean   = false  owners may have handed an item to a sale contract
-- $by_lt                 boolean   = false  order by last transaction, newest first
-- $by_owner              boolean   = false  order by owner, collection and index
-- $by_collection         boolean   = false  order by collection and index
-- $by_first              boolean   = false  order by first appearance
-- $mc_seqno              bigint    = null   as of this masterchain block; null: the newest
-- $limit                 integer            most rows
-- $offset                integer   = 0      rows to pass over
--
-- returns: the columns of nft_items, first_lt; in order
with sales as (
    select
        workchain,
        account,
        nft_workchain,
        nft,
        nft_owner_workchain,
        nft_owner
    from nft_sales
    where
        $include_on_sale
        and kind <> 'telemint'
        and ($mc_seqno is null or mc_seqno <= $mc_seqno)
    qualify
        row_number() over (
            partition by
                workchain,
                account
            order by mc_seqno desc
        ) = 1
        and (nft_owner_workchain, nft_owner) in (
            select
                unnest($owner_workchains::integer[]),
                unnest($owners::blob[])
        )
),

matching as (
    select
        workchain,
        account,
        mc_seqno
    from nft_items
    where
        (
            len($accounts::blob[]) = 0
            or (workchain, account) in (
                select
                    unnest($workchains::integer[]),
                    unnest($accounts::blob[])
            )
        )
        and (
            len($collections::blob[]) = 0
            or (collection_workchain, collection) in (
                select
                    unnest($collection_workchains::integer[]),
                    unnest($collections::blob[])
            )
        )
        and (len($indexes::text[]) = 0 or list_contains($indexes::text[], item_index))
        and (
            len($owners::blob[]) = 0
            or (owner_workchain, owner) in (
                select
                    unnest($owner_workchains::integer[]),
                    unnest($owners::blob[])
            )
            or (owner_workchain, owner, workchain, account) in (
                select
                    workchain,
                    account,
                    nft_workchain,
                    nft
                from sales
            )
        )
),

states as (
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
        content,
        min(lt) over (
            partition by
                workchain,
                account
        ) as first_lt
    from nft_items
    where
        ($mc_seqno is null or mc_seqno <= $mc_seqno)
        and (workchain, account) in (
            select
                workchain,
                account
            from matching
        )
    qualify row_number() over (
        partition by
            workchain,
            account
        order by mc_seqno desc
    ) = 1
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
from states
left join sales on
    states.owner_workchain = sales.workchain
    and states.owner = sales.account
    and states.workchain = sales.nft_workchain
    and states.account = sales.nft
where
    (states.workchain, states.account, states.mc_seqno) in (
        select
            workchain,
            account,
            mc_seqno
        from matching
    )
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

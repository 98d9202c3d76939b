-- NFT collections with their items, owners, transfers and sales.
--
-- $sort   text          sort key: owners, items, transfers or volume
-- $limit  integer       maximum number of rows
-- $offset integer  = 0  rows to skip
--
-- returns: workchain, account, items, owners, transfers (successful ones), sales, volume (nanoton
-- paid for items)
with held as (
    select
        collection_workchain as workchain,
        collection as account,
        count(*) as items,
        count(distinct (owner_workchain, owner)) as owners
    from latest('nft_items')
    where collection is not null
    group by all
),

moved as (
    select
        collection_workchain as workchain,
        collection as account,
        count(*) filter (where not aborted) as transfers
    from nft_transfers
    where collection is not null
    group by all
),

sold as (
    select
        collection_workchain as workchain,
        collection_id as account,
        count(*) as sales,
        sum(price_units) as volume
    from v_nft_sales
    group by all
),

listed as (
    select
        workchain,
        account,
        coalesce(items, 0) as items,
        coalesce(owners, 0) as owners,
        coalesce(transfers, 0) as transfers,
        coalesce(sales, 0) as sales,
        coalesce(volume, 0) as volume
    from latest('nft_collections')
    left join held using (workchain, account)
    left join moved using (workchain, account)
    left join sold using (workchain, account)
)

select
    workchain,
    account,
    items,
    owners,
    transfers,
    sales,
    volume
from listed
order by
    case $sort
        when 'items' then items::double
        when 'transfers' then transfers::double
        when 'volume' then volume::double
        else owners::double
    end desc,
    workchain,
    account
limit $limit
offset $offset

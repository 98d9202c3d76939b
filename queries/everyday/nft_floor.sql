-- Floor price of NFT collections: the cheapest item on sale at a fixed price.
--
-- Only sale contracts that hold their item now; auctions have no fixed price.
--
-- $limit integer = 50  maximum number of rows
--
-- chart: bar x=collection y=floor
-- returns: collection, collection_name, on_sale, floor, item, sale_contract; most items on sale
-- first; floor in TON
with offers as (
    select
        items.collection_workchain,
        items.collection,
        ton_address(items.workchain, items.account) as item,
        ton_address(sales.workchain, sales.account) as sale_contract,
        ton_scaled(try_cast(sales.details ->> '$.full_price' as decimal(38, 0)), 9) as price
    from latest_nft_sales as sales
    join latest_nft_items as items
        on sales.nft = items.account
        and sales.nft_workchain = items.workchain
        and items.owner = sales.account
        and items.owner_workchain = sales.workchain
    where
        sales.kind = 'getgems_sale'
        and (sales.details ->> '$.is_complete') = 'false'
        and try_cast(sales.details ->> '$.full_price' as decimal(38, 0)) > 0
)

select
    ton_address(offers.collection_workchain, offers.collection) as collection,
    collections.content ->> '$.name' as collection_name,
    count(*) as on_sale,
    min(price) as floor,
    arg_min(item, (price, item)) as item,
    arg_min(sale_contract, (price, item)) as sale_contract
from offers
left join latest_nft_collections as collections
    on offers.collection = collections.account
    and offers.collection_workchain = collections.workchain
group by offers.collection_workchain, offers.collection, collection_name
order by
    on_sale desc,
    collection
limit $limit

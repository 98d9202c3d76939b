-- The newest purchases of NFTs and domains.
--
-- $collection address = null  only of this collection; null: any
-- $limit      integer = 100   maximum number of rows
--
-- returns: time, event, item, collection, collection_name, seller, buyer, price, marketplace,
-- trace_id; price in TON
select
    time,
    event,
    item,
    collection,
    collection_name,
    seller,
    buyer,
    price,
    marketplace,
    trace_id
from v_nft_sales
where
    $collection is null
    or (
        collection_id = ton_account($collection)
        and collection_workchain = ton_workchain($collection)
    )
order by
    time desc,
    lt desc,
    item
limit $limit

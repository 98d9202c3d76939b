-- NFT sales by collection and day.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 1000  maximum number of rows
--
-- chart: bar x=date y=volume_ton by=collection
-- returns: date, collection, collection_name, sales, buyers, volume_ton, lowest, median, highest;
-- newest day and most volume first; prices in TON
select
    time::date as date,
    collection,
    collection_name,
    count(*) as sales,
    count(distinct buyer) as buyers,
    sum(price) as volume_ton,
    min(price) as lowest,
    median(price) as median,
    max(price) as highest
from v_nft_sales
where in_days(time, $first, $last)
group by date, collection, collection_name
order by
    date desc,
    volume_ton desc nulls last,
    collection
limit $limit

-- The newest row of every NFT sale contract in the snapshot.
create or replace view latest_nft_sales as
select *
from latest('nft_sales');

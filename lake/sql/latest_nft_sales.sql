-- The newest row of every contract that sells an NFT in the snapshot.
create or replace view latest_nft_sales as
select *
from latest('nft_sales');

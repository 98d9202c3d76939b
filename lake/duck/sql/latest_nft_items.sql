-- The newest row of every NFT item in the snapshot.
create or replace view latest_nft_items as
select *
from latest('nft_items');

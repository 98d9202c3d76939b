-- The newest row of every NFT collection in the snapshot.
create or replace view latest_nft_collections as
select *
from latest('nft_collections');

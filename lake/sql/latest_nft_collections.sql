-- The newest row of every NFT collection in the snapshot.
create or replace view latest_nft_collections as
select *
from nft_collections
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

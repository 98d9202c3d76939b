-- The newest row of every NFT item in the snapshot.
create or replace view latest_nft_items as
select *
from nft_items
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

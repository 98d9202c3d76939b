-- The newest row of every NFT sale contract in the snapshot.
create or replace view latest_nft_sales as
select *
from nft_sales
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

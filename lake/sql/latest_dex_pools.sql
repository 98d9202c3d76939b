-- The newest row of every liquidity pool in the snapshot.
create or replace view latest_dex_pools as
select *
from dex_pools
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

-- The newest row of every DEX pool in the snapshot.
create or replace view latest_dex_pools as
select *
from latest('dex_pools');

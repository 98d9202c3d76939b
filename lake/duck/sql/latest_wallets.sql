-- The newest row of every wallet in the snapshot.
create or replace view latest_wallets as
select *
from latest('wallets');

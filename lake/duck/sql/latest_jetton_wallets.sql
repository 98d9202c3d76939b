-- The newest row of every jetton wallet in the snapshot.
create or replace view latest_jetton_wallets as
select *
from latest('jetton_wallets');

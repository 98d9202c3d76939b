-- The newest row of every multisig wallet in the snapshot.
create or replace view latest_multisig_wallets as
select *
from latest('multisig_wallets');

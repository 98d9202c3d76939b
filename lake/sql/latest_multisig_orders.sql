-- The newest row of every order of a multisig wallet in the snapshot.
create or replace view latest_multisig_orders as
select *
from latest('multisig_orders');

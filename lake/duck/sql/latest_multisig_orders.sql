-- The newest row of every multisig order in the snapshot.
create or replace view latest_multisig_orders as
select *
from latest('multisig_orders');

-- The newest row of every vesting wallet in the snapshot.
create or replace view latest_vesting_contracts as
select *
from latest('vesting_contracts');

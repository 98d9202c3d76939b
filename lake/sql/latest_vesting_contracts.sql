-- The newest row of every vesting wallet in the snapshot.
create or replace view latest_vesting_contracts as
select *
from vesting_contracts
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

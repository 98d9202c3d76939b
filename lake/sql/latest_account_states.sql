-- The newest state of every account in the snapshot.
create or replace view latest_account_states as
select *
from states_as_of('account_states', null);

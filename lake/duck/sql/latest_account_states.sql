-- The newest state of every account in the snapshot.
create or replace view latest_account_states as
select *
from account_states
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc, block_seqno desc
) = 1;

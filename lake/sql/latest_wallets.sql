-- The newest row of every wallet in the snapshot.
create or replace view latest_wallets as
select *
from wallets
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

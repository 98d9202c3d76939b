-- The newest row of every jetton wallet in the snapshot.
create or replace view latest_jetton_wallets as
select *
from jetton_wallets
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

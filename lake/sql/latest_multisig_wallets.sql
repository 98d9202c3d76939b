-- The newest row of every multisig wallet in the snapshot.
create or replace view latest_multisig_wallets as
select *
from multisig_wallets
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

-- The newest row of every order of a multisig wallet in the snapshot.
create or replace view latest_multisig_orders as
select *
from multisig_orders
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

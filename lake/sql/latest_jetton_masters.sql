-- The newest row of every jetton master in the snapshot.
create or replace view latest_jetton_masters as
select *
from jetton_masters
qualify row_number() over (
    partition by workchain, account
    order by mc_seqno desc
) = 1;

-- The newest row of every jetton master in the snapshot.
create or replace view latest_jetton_masters as
select *
from latest('jetton_masters');

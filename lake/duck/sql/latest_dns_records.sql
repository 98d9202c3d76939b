-- The newest row of every domain in the snapshot.
create or replace view latest_dns_records as
select *
from latest('dns_records');

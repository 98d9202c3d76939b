-- Active accounts and their fees by day.
select
    time::date as date,
    count(distinct address) as accounts,
    count(*) as transactions,
    sum(fee) as fees
from {{ source('tonlake', 'v_transactions') }}
group by all

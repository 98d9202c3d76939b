-- Wallets that came back, by the day of their first external message in the lake.
--
-- $first date    = null  earliest first day, UTC; null: of the lake
-- $last  date    = null  latest first day, UTC; null: of the lake
-- $days  integer = 30    days after the first one, at most
--
-- chart: line x=day_number y=share by=first_day
-- returns: first_day, day_number (0: the first day), wallets, share of those of the first day
with days as (
    select
        destination_workchain as workchain,
        destination as account,
        tx_time::date as date
    from messages
    where direction = 'in' and kind = 'ext_in'
    group by all
),

aged as (
    select
        date,
        min(date) over (partition by workchain, account) as first_day
    from days
),

counted as (
    select
        first_day,
        date - first_day as day_number,
        count(*) as wallets
    from aged
    group by first_day, day_number
)

select
    first_day,
    day_number,
    wallets,
    wallets / first_value(wallets) over (partition by first_day order by day_number) as share
from counted
where day_number <= $days and in_days(first_day, $first, $last)
order by
    first_day,
    day_number

-- Accounts with the highest balances, now or at a time.
--
-- $at    timestamp = null  moment, UTC; null: the end of the lake
-- $limit integer   = 50    maximum number of rows
--
-- chart: bar x=address y=balance
-- returns: address, label, balance, time (of the last change); highest first; balance in TON
with past_states as not materialized (
    from account_states
    where ton_time(utime) <= coalesce($at::timestamp, 'infinity'::timestamp)
),
newest_states as not materialized (
    from states_as_of('past_states', null)
)
select
    address,
    label,
    balance,
    time
from balances_of_coins('newest_states')
order by
    balance_units desc,
    address
limit $limit

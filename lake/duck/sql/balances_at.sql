create or replace macro balances_at(ts) as table
with past_states as not materialized (
    from account_states
    where ton_time(utime) <= ts
),
past_wallets as not materialized (
    from jetton_wallets
    where ton_time(utime) <= ts
),
newest_states as not materialized (
    from states_as_of('past_states', null)
),
newest_wallets as not materialized (
    from as_of('past_wallets', null)
)
select *
from balances_of('newest_states', 'newest_wallets', 'v_jettons');

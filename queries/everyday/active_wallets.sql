-- Active wallets and accounts by day.
--
-- A wallet is active if it received an external message, an account if it had a transaction.
--
-- $first date = null  first UTC day; null: of the lake
-- $last  date = null  last UTC day; null: of the lake
--
-- chart: line x=date y=active_wallets,active_accounts
-- returns: date, active_wallets, active_accounts, transactions; oldest first
with accounts as (
    select
        time::date as date,
        count(distinct (workchain, account)) as active_accounts,
        count(*) as transactions
    from transactions
    where in_days(time, $first, $last)
    group by date
),

wallets as (
    select
        tx_time::date as date,
        count(distinct (destination_workchain, destination)) as active_wallets
    from messages
    where direction = 'in' and kind = 'ext_in' and in_days(tx_time, $first, $last)
    group by date
)

select
    date,
    coalesce(active_wallets, 0) as active_wallets,
    active_accounts,
    transactions
from accounts
left join wallets using (date)
order by date

-- Active wallets and accounts by day.
--
-- A wallet is active if it received an external message, an account if it had a transaction.
--
-- $first date = null  first UTC day; null: of the lake
-- $last  date = null  last UTC day; null: of the lake
--
-- chart: line x=date y=active_wallets,active_accounts
-- returns: date, active_wallets, active_accounts, transactions; oldest first
select
    date,
    active_wallets,
    active_accounts,
    transactions
from v_daily
where in_range(date, $first, $last)
order by date

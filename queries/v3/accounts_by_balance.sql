-- A page of all accounts, highest balance first.
--
-- $limit  integer       maximum number of rows
-- $offset integer  = 0  rows to skip
--
-- returns: workchain, account, balance; equal balances by workchain and account
select
    workchain,
    account,
    balance
from latest_account_states
order by
    balance desc,
    workchain,
    account
limit $limit
offset $offset

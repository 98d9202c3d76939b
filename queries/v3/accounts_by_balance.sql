-- A page of all accounts, the richest first.
--
-- $limit  integer       most rows
-- $offset integer  = 0  rows to pass over
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

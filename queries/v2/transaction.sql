-- One transaction of an account.
--
-- $workchain integer  workchain of the account
-- $account   blob     account id
-- $lt        bigint   logical time
--
-- returns: its hash
select hash
from transactions
where
    workchain = $workchain
    and account = $account
    and lt = $lt

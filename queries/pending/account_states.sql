-- The columns of account states that classification reads.
--
-- $accounts blob[]  account ids, in any workchain
--
-- returns: the columns of account_states that classification reads; in no order
select
    workchain,
    account,
    mc_seqno,
    code_hash,
    data_hash
from account_states
where in_list(account, $accounts::blob[])

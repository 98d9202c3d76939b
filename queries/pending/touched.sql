-- The masterchain block of the last transaction of some accounts.
--
-- $accounts       blob[]  account ids, in any workchain
-- $first_mc_seqno bigint  first masterchain block to search
--
-- returns: workchain, account, mc_seqno of the last one; in no order
select
    workchain,
    account,
    max(mc_seqno) as mc_seqno
from transactions
where
    mc_seqno >= $first_mc_seqno
    and in_list(account, $accounts::blob[])
group by
    workchain,
    account

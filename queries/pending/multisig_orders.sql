-- All recorded states of some accounts as multisig orders.
--
-- $accounts blob[]  account ids, in any workchain
--
-- returns: the columns of multisig_orders that classification reads; in no order
select
    workchain,
    account,
    mc_seqno,
    signers
from multisig_orders
where in_list(account, $accounts::blob[])

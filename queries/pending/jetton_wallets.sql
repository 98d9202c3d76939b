-- All recorded states of some accounts as jetton wallets.
--
-- $accounts blob[]  account ids, in any workchain
--
-- returns: the columns of jetton_wallets that classification reads; in no order
select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    balance,
    owner_workchain,
    owner,
    jetton_workchain,
    jetton,
    is_claimed
from jetton_wallets
where in_list(account, $accounts::blob[])

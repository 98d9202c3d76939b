-- All recorded states of some accounts as DEX pools.
--
-- $accounts blob[]  account ids, in any workchain
--
-- returns: the columns of dex_pools that classification reads; in no order
select
    workchain,
    account,
    mc_seqno,
    lt,
    utime,
    code_hash,
    data_hash,
    dex,
    pool_type,
    asset_1,
    asset_2,
    reserve_1,
    reserve_2,
    fee
from dex_pools
where in_list(account, $accounts::blob[])

-- The states of accounts after the loaded blocks that touched them, found by their hashes; accounts
-- that a block deleted; and before block 1 those of the zero state.
create or replace table account_states as
with
lasts as (
    select *
    from transactions
    qualify lt = max(lt) over (partition by workchain, account, shard, block_seqno)
),
states as (
    select
        workchain_of(account) as workchain,
        account_of(account) as account,
        hash_of(hash) as hash,
        account_status,
        balance,
        timestamp,
        last_trans_lt,
        hash_of(last_trans_hash) as last_trans_hash,
        hash_of(frozen_hash) as frozen_hash,
        hash_of(code_hash) as code_hash,
        hash_of(data_hash) as data_hash,
        code_boc,
        data_boc
    from incoming
    where timestamp between $start and $end
)
select
    lasts.workchain,
    lasts.account,
    lasts.mc_seqno,
    lasts.shard,
    lasts.block_seqno,
    lasts.now as utime,
    lasts.account_state_hash_after as hash,
    if(lasts.end_status = 'nonexist', 'nonexist', states.account_status) as account_status,
    if(lasts.end_status = 'nonexist', 0, states.balance) as balance,
    lasts.lt as last_trans_lt,
    lasts.hash as last_trans_hash,
    states.frozen_hash,
    states.code_hash,
    states.data_hash,
    states.code_boc,
    states.data_boc
from lasts
left join states on
    lasts.workchain = states.workchain
    and lasts.account = states.account
    and lasts.account_state_hash_after = states.hash
    and lasts.end_status <> 'nonexist'
union all
select
    workchain,
    account,
    0 as mc_seqno,
    cast(-9223372036854775808 as bigint) as shard,
    0 as block_seqno,
    timestamp as utime,
    hash,
    account_status,
    balance,
    last_trans_lt,
    last_trans_hash,
    frozen_hash,
    code_hash,
    data_hash,
    code_boc,
    data_boc
from states
where last_trans_lt = 0 and $first = 1
order by mc_seqno

-- The last transactions of accounts in the loaded blocks. Kept in a table of their own, as the
-- memory of a window is only free when its statement ends.
create or replace table lasts as
select workchain, account, mc_seqno, shard, block_seqno, now, lt, hash,
    account_state_hash_after, end_status
from transactions
qualify lt = max(lt) over (partition by workchain, account, shard, block_seqno);

-- The states of accounts after the loaded blocks that touched them, found by their hashes; accounts
-- that a block deleted; and before block 1 those of the zero state.
create or replace table account_states as
with states as (
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
        code_boc as code,
        data_boc as data
    from incoming
    where timestamp between $start and $end
)
select
    coalesce(lasts.workchain, states.workchain) as workchain,
    coalesce(lasts.account, states.account) as account,
    coalesce(lasts.mc_seqno, 0) as mc_seqno,
    coalesce(lasts.shard, cast(-9223372036854775808 as bigint)) as shard,
    coalesce(lasts.block_seqno, 0) as block_seqno,
    coalesce(lasts.now, states.timestamp) as utime,
    coalesce(lasts.account_state_hash_after, states.hash) as hash,
    if(lasts.end_status = 'nonexist', 'nonexist', states.account_status) as account_status,
    if(lasts.end_status = 'nonexist', 0, states.balance) as balance,
    coalesce(lasts.lt, states.last_trans_lt) as last_trans_lt,
    coalesce(lasts.hash, states.last_trans_hash) as last_trans_hash,
    states.frozen_hash,
    states.code_hash,
    states.data_hash,
    states.code,
    states.data
from states
full join lasts on
    lasts.workchain = states.workchain
    and lasts.account = states.account
    and lasts.account_state_hash_after = states.hash
    and lasts.end_status <> 'nonexist'
where lasts.lt is not null or (states.last_trans_lt = 0 and $first = 1)

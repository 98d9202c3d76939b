-- The oldest and the newest masterchain block.
--
-- $first_mc_seqno bigint  lowest seqno held
-- $last_mc_seqno  bigint  highest seqno held
--
-- returns: the headers, oldest first
select
    workchain,
    shard,
    seqno,
    mc_seqno,
    root_hash,
    file_hash,
    global_id,
    version,
    after_merge,
    before_split,
    after_split,
    want_split,
    want_merge,
    key_block,
    vert_seqno_incr,
    flags,
    vert_seqno,
    gen_utime,
    start_lt,
    end_lt,
    validator_list_hash_short,
    gen_catchain_seqno,
    min_ref_mc_seqno,
    prev_key_block_seqno,
    master_ref_seqno,
    prev_shard,
    prev_seqno,
    prev2_shard,
    prev2_seqno,
    rand_seed,
    created_by,
    tx_count
from blocks
where
    workchain = -1
    and mc_seqno in ($first_mc_seqno, $last_mc_seqno)
order by seqno

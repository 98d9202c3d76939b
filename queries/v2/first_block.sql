-- The first block, in a line of shards, that ends at or after a logical time, or was made at or
-- after a time: one of both is given.
--
-- $workchain integer        workchain of the block
-- $shards    bigint[]       shards that contain an account, from the whole workchain downwards
-- $lt        bigint = null  logical time
-- $utime     bigint = null  Unix seconds
--
-- returns: the header
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
    flags,
    vert_seqno,
    gen_utime,
    start_lt,
    end_lt,
    validator_list_hash_short,
    gen_catchain_seqno,
    min_ref_mc_seqno,
    prev_key_block_seqno,
    prev_shard,
    prev_seqno,
    prev_root_hash,
    prev_file_hash,
    prev2_shard,
    prev2_seqno,
    prev2_root_hash,
    prev2_file_hash,
    state_root_hash
from blocks
where
    workchain = $workchain
    and list_contains($shards::bigint[], shard)
    and ($lt is null or end_lt >= $lt)
    and ($utime is null or gen_utime >= $utime)
order by
    if($lt is null, gen_utime, end_lt),
    seqno
limit 1

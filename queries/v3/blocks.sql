-- A page of blocks by any filters; a filter that is null is ignored.
--
-- $workchain   integer  = null  workchain
-- $shard       bigint   = null  shard
-- $seqno       bigint   = null  seqno in its shard
-- $root_hash   blob     = null  root hash
-- $file_hash   blob     = null  file hash
-- $mc_seqno    bigint   = null  masterchain block that commits it
-- $start_utime bigint   = null  first unix second
-- $end_utime   bigint   = null  last unix second
-- $start_lt    bigint   = null  lowest start_lt
-- $end_lt      bigint   = null  highest start_lt
-- $descending  boolean  = true  newest first
-- $limit       integer          maximum number of rows
-- $offset      integer  = 0     rows to skip
--
-- returns: the header; by time and start_lt, then workchain and shard ascending
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
    gen_software_version,
    gen_software_capabilities,
    master_ref_seqno,
    prev_shard,
    prev_seqno,
    prev_root_hash,
    prev_file_hash,
    prev2_shard,
    prev2_seqno,
    prev2_root_hash,
    prev2_file_hash,
    state_root_hash,
    rand_seed,
    created_by,
    tx_count,
    boc_bytes
from blocks
where
    equal_or_any(workchain, $workchain)
    and equal_or_any(shard, $shard)
    and equal_or_any(seqno, $seqno)
    and equal_or_any(root_hash, $root_hash)
    and equal_or_any(file_hash, $file_hash)
    and equal_or_any(mc_seqno, $mc_seqno)
    and in_range(gen_utime, $start_utime, $end_utime)
    and in_range(start_lt, $start_lt, $end_lt)
order by
    case when $descending then gen_utime end desc,
    case when not $descending then gen_utime end,
    case when $descending then start_lt end desc,
    case when not $descending then start_lt end,
    workchain,
    shard
limit $limit
offset $offset

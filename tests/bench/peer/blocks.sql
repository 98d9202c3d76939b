-- Blocks, with those before them.
select
    workchain,
    shard,
    seqno,
    peer_hash(root_hash) as root_hash,
    peer_hash(file_hash) as file_hash,
    -1 as mc_block_workchain,
    -9223372036854775808 as mc_block_shard,
    mc_seqno as mc_block_seqno,
    global_id,
    version,
    after_merge,
    before_split,
    after_split,
    want_merge,
    want_split,
    key_block,
    vert_seqno_incr,
    flags,
    gen_utime,
    start_lt,
    end_lt,
    validator_list_hash_short,
    gen_catchain_seqno,
    min_ref_mc_seqno,
    prev_key_block_seqno,
    vert_seqno,
    master_ref_seqno,
    peer_hash(rand_seed) as rand_seed,
    peer_hash(created_by) as created_by,
    tx_count,
    case
        when prev2_seqno is null then printf('{"(%d,%d,%d)"}', workchain, prev_shard, prev_seqno)
        else printf(
            '{"(%d,%d,%d)","(%d,%d,%d)"}',
            workchain, prev_shard, prev_seqno, workchain, prev2_shard, prev2_seqno
        )
    end as prev_blocks
from blocks

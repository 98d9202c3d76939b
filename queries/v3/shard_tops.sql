-- The newest block of every shard as of a masterchain block, the masterchain's own included.
--
-- $mc_seqno bigint  the masterchain block
--
-- returns: the header by workchain, shard; only top_* if the block itself is not in the lake
with tops as (
    select
        workchain,
        shard,
        seqno
    from shard_blocks
    where mc_seqno = $mc_seqno
)

select
    tops.workchain as top_workchain,
    tops.shard as top_shard,
    tops.seqno as top_seqno,
    blocks.workchain,
    blocks.shard,
    blocks.seqno,
    blocks.mc_seqno,
    blocks.root_hash,
    blocks.file_hash,
    blocks.global_id,
    blocks.version,
    blocks.after_merge,
    blocks.before_split,
    blocks.after_split,
    blocks.want_split,
    blocks.want_merge,
    blocks.key_block,
    blocks.vert_seqno_incr,
    blocks.flags,
    blocks.vert_seqno,
    blocks.gen_utime,
    blocks.start_lt,
    blocks.end_lt,
    blocks.validator_list_hash_short,
    blocks.gen_catchain_seqno,
    blocks.min_ref_mc_seqno,
    blocks.prev_key_block_seqno,
    blocks.master_ref_seqno,
    blocks.prev_shard,
    blocks.prev_seqno,
    blocks.prev2_shard,
    blocks.prev2_seqno,
    blocks.rand_seed,
    blocks.created_by,
    blocks.tx_count
from tops
left join blocks on
    tops.workchain = blocks.workchain
    and tops.shard = blocks.shard
    and tops.seqno = blocks.seqno
order by
    tops.workchain,
    tops.shard,
    tops.seqno

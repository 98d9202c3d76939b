-- The times of all shards as of masterchain blocks.
--
-- $mc_seqnos bigint[]  masterchain blocks
--
-- returns: mc_seqno, workchain, shard, gen_utime; no row if the block is not in the lake
select
    mc_seqno,
    workchain,
    shard,
    gen_utime
from shard_blocks
where in_list(mc_seqno, $mc_seqnos::bigint[])

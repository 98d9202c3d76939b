-- The time of every shard as of a masterchain block.
--
-- $mc_seqno  bigint  masterchain block
--
-- returns: workchain, shard, gen_utime; no row where the block is not in the lake
select
    workchain,
    shard,
    gen_utime
from shard_blocks
where mc_seqno = $mc_seqno

-- The newest block of every shard as of a masterchain block, from left to right.
--
-- $mc_seqno bigint  masterchain block
--
-- returns: block ids, without the masterchain's
select
    workchain,
    shard,
    seqno,
    root_hash,
    file_hash
from shard_blocks
where
    mc_seqno = $mc_seqno
    and workchain <> -1
order by
    workchain < 0,
    workchain,
    shard < 0,
    shard

-- The seqnos that the lake has of each shard.
--
-- $workchain integer  = null  only of this workchain
-- $shard     bigint   = null  only of this shard
--
-- returns: workchain, shard, first_seqno, last_seqno
select
    workchain,
    shard,
    min(seqno) as first_seqno,
    max(seqno) as last_seqno
from blocks
where
    equal_or_any(workchain, $workchain)
    and equal_or_any(shard, $shard)
group by
    workchain,
    shard
order by
    workchain,
    shard

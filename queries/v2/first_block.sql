-- The first block, in the shards that contain an account, that ends at or after a logical time, or
-- was generated at or after a time; one of the two is required.
--
-- $workchain integer        workchain of the block
-- $shards    bigint[]       shards that contain an account, from the workchain's root shard down
-- $lt        bigint = null  logical time
-- $utime     bigint = null  Unix seconds
--
-- returns: workchain, shard, seqno, mc_seqno
select
    workchain,
    shard,
    seqno,
    mc_seqno
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

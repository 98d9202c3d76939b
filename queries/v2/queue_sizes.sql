-- The size of each shard's outbound message queue at a masterchain block, the masterchain first.
--
-- $mc_seqno bigint  masterchain block
--
-- returns: block ids, and out_queue_size, NULL if unknown
select
    tops.workchain,
    tops.shard,
    tops.seqno,
    tops.root_hash,
    tops.file_hash,
    sizes.out_queue_size
from shard_blocks as tops
left join queue_sizes as sizes
    on
        tops.workchain = sizes.workchain
        and tops.shard = sizes.shard
        and tops.seqno = sizes.seqno
where tops.mc_seqno = $mc_seqno
order by
    tops.workchain >= 0,
    tops.workchain,
    tops.shard < 0,
    tops.shard

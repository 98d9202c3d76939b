-- Some masterchain blocks, newest first, with how much each of them commits.
--
-- $before bigint  = null  only masterchain blocks before this one
-- $first  bigint          no masterchain block before this one: keeps the reading short
-- $limit  integer         most rows
--
-- returns: mc_seqno, utime, shard_blocks, transactions; newest first
select
    mc_seqno,
    max(gen_utime) filter (where workchain = -1) as utime,
    count(*) filter (where workchain <> -1) as shard_blocks,
    sum(tx_count)::bigint as transactions
from blocks
where mc_seqno >= $first and ($before is null or mc_seqno < $before)
group by mc_seqno
order by mc_seqno desc
limit $limit

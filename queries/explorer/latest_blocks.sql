-- Some masterchain blocks, newest first, with the number of shard blocks and transactions.
--
-- $before bigint  = null  upper bound, excluded
-- $first  bigint          lowest masterchain block, which limits the files read
-- $limit  integer         maximum number of rows
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

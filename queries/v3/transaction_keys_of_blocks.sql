-- A page of the transactions of some blocks.
--
-- $mc_seqnos    bigint[]   masterchain blocks that commit them
-- $workchains   integer[]  workchains of the blocks
-- $shards       bigint[]   their shards
-- $block_seqnos bigint[]   their seqnos
-- $descending   boolean    = false  highest logical time first; accounts of one time ascend
-- $limit        integer    maximum number of rows
-- $offset       integer    = 0      rows to skip
--
-- returns: hash, lt; in order
select
    hash,
    lt
from transactions
where
    in_list(mc_seqno, $mc_seqnos::bigint[])
    and (workchain, shard, block_seqno) in (
        select
            unnest($workchains::integer[]),
            unnest($shards::bigint[]),
            unnest($block_seqnos::bigint[])
    )
order by
    case when $descending then lt end desc,
    case when not $descending then lt end,
    workchain,
    account
limit $limit
offset $offset

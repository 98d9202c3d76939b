-- A page of the transactions of some blocks.
--
-- $mc_seqnos    bigint[]   masterchain blocks that commit them
-- $workchains   integer[]  workchains of the blocks
-- $shards       bigint[]   their shards
-- $block_seqnos bigint[]   their seqnos
-- $limit        integer    maximum number of rows
--
-- returns: hash, lt; ascending logical time
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
    lt,
    workchain,
    account
limit $limit

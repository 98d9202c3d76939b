-- Root and file hash of masterchain blocks.
--
-- $seqnos bigint[]  seqnos
--
-- returns: the blocks that the lake has, by seqno
select
    seqno,
    root_hash,
    file_hash
from shard_blocks
where
    workchain = -1
    and in_list(mc_seqno, $seqnos::bigint[])
order by seqno

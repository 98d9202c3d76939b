-- The proof of a block, as stored by the node.
--
-- $workchain integer  workchain of the block
-- $shard     bigint   its shard
-- $seqno     bigint   its seqno
-- $mc_seqno  bigint   masterchain block that commits it
--
-- returns: proof, mc_extra; no row if the lake stores no proofs
select
    proof,
    mc_extra
from block_proofs
where
    workchain = $workchain
    and shard = $shard
    and seqno = $seqno
    and mc_seqno = $mc_seqno

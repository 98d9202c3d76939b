-- Blocks with their proofs: only of the masterchain, or of all shards.
--
-- $first      bigint   first masterchain block
-- $last       bigint   last masterchain block
-- $shards     boolean  include shard blocks
-- $descending boolean  newest first
--
-- returns: header and proof; the proof is null if the lake has none
select
    b.workchain,
    b.shard,
    b.seqno,
    b.root_hash,
    b.file_hash,
    b.state_root_hash,
    b.gen_utime,
    b.start_lt,
    b.end_lt,
    b.prev_key_block_seqno,
    b.key_block,
    b.after_merge,
    p.proof,
    p.mc_extra
from blocks as b
left join block_proofs as p
    on b.workchain = p.workchain
    and b.shard = p.shard
    and b.seqno = p.seqno
where
    b.mc_seqno between $first and $last
    and (b.workchain = -1 or $shards)
order by
    case when $descending then -b.mc_seqno else b.mc_seqno end,
    b.workchain,
    b.seqno desc,
    b.shard

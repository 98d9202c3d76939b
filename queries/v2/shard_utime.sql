-- The time of an account's shard as of a masterchain block.
--
-- $mc_seqno  bigint    masterchain block
-- $workchain integer   workchain of the account
-- $shards    bigint[]  every shard that could contain the account
--
-- returns: no row where the masterchain block is not in the lake or knows no such workchain
select gen_utime
from shard_blocks
where
    mc_seqno = $mc_seqno
    and workchain = $workchain
    and list_contains($shards::bigint[], shard)

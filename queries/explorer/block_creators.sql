-- The validators that created blocks within a span of time, those with most blocks first.
--
-- $since bigint  Unix seconds of the first block that counts
-- $until bigint  Unix seconds after the last one
--
-- returns: created_by (public key), blocks, mc_blocks (in the masterchain), utime of the newest
select
    created_by,
    count(*) as blocks,
    count(*) filter (where workchain = -1) as mc_blocks,
    max(gen_utime) as utime
from blocks
where gen_utime >= $since and gen_utime < $until
group by created_by
order by
    blocks desc,
    created_by

-- The time and logical time covered by the blocks of some masterchain blocks.
--
-- All earlier blocks end before own_lt and are not later than own_utime; all later blocks begin
-- after settled_lt and are not earlier than settled_utime. Several blocks may share a second.
--
-- $mc_seqnos bigint[]  masterchain blocks
--
-- returns: mc_seqno, first_utime, last_utime, first_lt, last_lt, own_utime, own_lt, settled_utime,
--          settled_lt
with tops as (
    select
        mc_seqno,
        min(gen_utime) as settled_utime,
        min(end_lt) as settled_lt
    from shard_blocks
    where in_list(mc_seqno, $mc_seqnos::bigint[])
    group by mc_seqno
)

select
    blocks.mc_seqno,
    min(gen_utime) as first_utime,
    max(gen_utime) as last_utime,
    min(start_lt) as first_lt,
    max(end_lt) as last_lt,
    max(gen_utime) filter (where workchain = -1) as own_utime,
    max(start_lt) filter (where workchain = -1) as own_lt,
    any_value(settled_utime) as settled_utime,
    any_value(settled_lt) as settled_lt
from blocks
join tops on blocks.mc_seqno = tops.mc_seqno
where in_list(blocks.mc_seqno, $mc_seqnos::bigint[])
group by blocks.mc_seqno

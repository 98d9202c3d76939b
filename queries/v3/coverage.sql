-- The time and logical time covered by the blocks of some masterchain blocks.
--
-- $mc_seqnos bigint[]  masterchain blocks
--
-- returns: mc_seqno, first_utime, last_utime, first_lt, last_lt
select
    mc_seqno,
    min(gen_utime) as first_utime,
    max(gen_utime) as last_utime,
    min(start_lt) as first_lt,
    max(end_lt) as last_lt
from blocks
where in_list(mc_seqno, $mc_seqnos::bigint[])
group by mc_seqno

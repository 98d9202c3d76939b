-- The points in time of a history, each with the last masterchain block up to it.
select moments.time, masters.seqno
from (
    select unnest(range(first, last + interval 1 microsecond, step)) as time
    from (
        select
            if(
                $every::interval > interval 0 second,
                $every::interval,
                error('every is not a positive interval: ' || $every)
            ) as step,
            coalesce($first::timestamp, min(make_timestamp(gen_utime * 1000000))) as first,
            coalesce($last::timestamp, max(make_timestamp(gen_utime * 1000000))) as last
        from blocks
        where workchain = -1
    )
) as moments
asof join (
    -- Several blocks may share a second.
    select max(seqno) as seqno, make_timestamp(gen_utime * 1000000) as time
    from blocks
    where workchain = -1
    group by gen_utime
) as masters
    on moments.time >= masters.time
order by moments.time

-- A page of some traces by when they ended; a filter that is null filters nothing.
--
-- $trace_ids   blob[]          the traces
-- $mc_seqno    bigint  = null  only complete ones whose last transaction this block commits
-- $start_utime bigint  = null  first unix second of the end
-- $end_utime   bigint  = null  last unix second of the end
-- $start_lt    bigint  = null  first logical time of the end
-- $end_lt      bigint  = null  last logical time of the end
-- $by_time     boolean = false order by time instead of logical time
-- $descending  boolean = true  latest first; traces of one end in the same direction
-- $after_end   bigint  = null  only what comes after a trace with this end
-- $after_id    blob    = null  and with this id
-- $limit       integer         most rows
-- $offset      integer = 0     rows to pass over
--
-- returns: every column of traces; in order
select
    trace_id,
    external_hash,
    external_hash_norm,
    mc_seqno_start,
    mc_seqno_end,
    start_lt,
    end_lt,
    start_utime,
    end_utime,
    state,
    transactions,
    messages,
    pending_messages
from traces
where
    trace_id in (select unnest($trace_ids::blob[]))
    and ($mc_seqno is null or (mc_seqno_end = $mc_seqno and state = 'complete'))
    and ($start_utime is null or end_utime >= $start_utime)
    and ($end_utime is null or end_utime <= $end_utime)
    and ($start_lt is null or end_lt >= $start_lt)
    and ($end_lt is null or end_lt <= $end_lt)
    and (
        $after_end is null
        or if(
            $descending,
            (if($by_time, end_utime, end_lt), trace_id) < ($after_end, $after_id),
            (if($by_time, end_utime, end_lt), trace_id) > ($after_end, $after_id)
        )
    )
order by
    case when $descending then if($by_time, end_utime, end_lt) end desc,
    case when not $descending then if($by_time, end_utime, end_lt) end,
    case when $descending then trace_id end desc,
    case when not $descending then trace_id end
limit $limit
offset $offset

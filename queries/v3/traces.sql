-- A page of traces, ordered by their end; a filter that is null is ignored.
--
-- $mc_seqno    bigint  = null  only complete traces whose last transaction this block commits
-- $start_utime bigint  = null  first unix second of the end
-- $end_utime   bigint  = null  last unix second of the end
-- $start_lt    bigint  = null  first logical time of the end
-- $end_lt      bigint  = null  last logical time of the end
-- $by_time     boolean = false order by time instead of logical time
-- $descending  boolean = true  newest first; ties by trace id, in the same direction
-- $after_end   bigint  = null  page cursor: end of the last trace seen
-- $after_id    blob    = null  page cursor: its id
-- $limit       integer         maximum number of rows
-- $offset      integer = 0     rows to skip
--
-- returns: every column of traces; in order
from traces_page(
    'traces', $mc_seqno, $start_utime, $end_utime, $start_lt, $end_lt,
    $by_time, $descending, $after_end, $after_id
)
order by
    case when $descending then if($by_time, end_utime, end_lt) end desc,
    case when not $descending then if($by_time, end_utime, end_lt) end,
    case when $descending then trace_id end desc,
    case when not $descending then trace_id end
limit $limit
offset $offset

-- A page of actions, ordered by the end of the trace; a filter that is null or empty is ignored.
--
-- $trace_ids    blob[]  = []     traces; empty: any
-- $action_ids   blob[]  = []     actions; empty: any
-- $tx_hashes    blob[]  = []     transactions, one of which belongs to the action; empty: any
-- $end_hashes   blob[]  = []     likewise: the transactions at the ends of a message
-- $account      text    = null   raw address of an account that takes part
-- $mc_seqno     bigint  = null   traces whose last transaction this block commits
-- $start_utime  bigint  = null   first unix second of the trace's end
-- $end_utime    bigint  = null   last unix second of the trace's end
-- $start_lt     bigint  = null   first logical time of the trace's end
-- $end_lt       bigint  = null   last logical time of the trace's end
-- $types        text[]  = []     types; empty: any
-- $excluded     text[]  = []     excluded types
-- $hidden_under text[]  = []     an action inside one of these types is left out
-- $by_time      boolean = false  order by time instead of logical time
-- $descending   boolean = true   newest first; ties in the same direction
-- $after_end    bigint  = null   page cursor: end of the trace last seen
-- $after_trace  blob    = null   page cursor: its id
-- $after_action bigint  = null   page cursor: end of the action last seen
-- $after_id     blob    = null   page cursor: its id
-- $limit        integer          maximum number of rows
-- $offset       integer = 0      rows to skip
--
-- returns: the columns of actions; in order
with matching as (
    from actions
    where
        in_list_or_any(trace_id, $trace_ids::blob[])
        and in_list_or_any(action_id, $action_ids::blob[])
        and (len($tx_hashes) = 0 or list_has_any(tx_hashes, $tx_hashes::blob[]))
        and (len($end_hashes) = 0 or list_has_any(tx_hashes, $end_hashes::blob[]))
        and ($account is null or list_contains(accounts, $account))
),

page as (
    from actions_page(
        'matching', $mc_seqno, $start_utime, $end_utime, $start_lt, $end_lt, $types, $excluded,
        $hidden_under, $by_time, $descending, $after_end, $after_trace, $after_action, $after_id
    )
)

from action_rows('page')
order by
    case when $descending then if($by_time, trace_end_utime, trace_end_lt) end desc,
    case when not $descending then if($by_time, trace_end_utime, trace_end_lt) end,
    case when $descending then trace_id end desc,
    case when not $descending then trace_id end,
    case when $descending then if($by_time, end_utime, end_lt) end desc,
    case when not $descending then if($by_time, end_utime, end_lt) end,
    case when $descending then action_id end desc,
    case when not $descending then action_id end
limit $limit
offset $offset

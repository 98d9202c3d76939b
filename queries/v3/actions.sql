-- A page of actions by when their traces ended; a filter that is null or empty filters nothing.
--
-- $trace_ids    blob[]           their traces
-- $action_ids   blob[]           the actions
-- $tx_hashes    blob[]           transactions of which one belongs to the action
-- $account      text    = null   raw address of an account that takes part
-- $mc_seqno     bigint  = null   traces whose last transaction this block commits
-- $start_utime  bigint  = null   first unix second of the trace's end
-- $end_utime    bigint  = null   last unix second of the trace's end
-- $start_lt     bigint  = null   first logical time of the trace's end
-- $end_lt       bigint  = null   last logical time of the trace's end
-- $types        text[]           types that are wanted; none: all
-- $excluded     text[]           types that are not wanted
-- $hidden_under text[]           types around an action that hide it
-- $by_time      boolean = false  order by time instead of logical time
-- $descending   boolean = true   latest first; all of one end in the same direction
-- $after_end    bigint  = null   only what comes after: this end of the trace,
-- $after_trace  blob    = null   this trace,
-- $after_action bigint  = null   this end of the action,
-- $after_id     blob    = null   and this action
-- $limit        integer          most rows
-- $offset       integer = 0      rows to pass over
--
-- returns: the columns of actions; in order
with matching as (
    from actions_page(
        'actions', $mc_seqno, $start_utime, $end_utime, $start_lt, $end_lt, $types, $excluded,
        $hidden_under, $by_time, $descending, $after_end, $after_trace, $after_action, $after_id
    )
    where
        in_list_or_any(trace_id, $trace_ids)
        and in_list_or_any(action_id, $action_ids)
        and (len($tx_hashes) = 0 or list_has_any(tx_hashes, $tx_hashes))
        and ($account is null or list_contains(accounts, $account))
)

from action_rows('matching')
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

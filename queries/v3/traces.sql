-- A page of traces by when they ended; a filter that is null filters nothing.
--
-- $trace_ids   blob[]  = null  the traces; null: any
-- $workchain   integer = null  workchain of an account with a transaction in the trace
-- $account     blob    = null  account id
-- $mc_seqno    bigint  = null  only complete ones whose last transaction this block commits
-- $start_utime bigint  = null  first unix second of the end
-- $end_utime   bigint  = null  last unix second of the end
-- $start_lt    bigint  = null  first logical time of the end
-- $end_lt      bigint  = null  last logical time of the end
-- $by_time     boolean = false order by time instead of logical time
-- $descending  boolean = true  latest first; traces of one end in the same direction
-- $after_end   bigint  = null  only traces after the one with this end
-- $after_id    blob    = null  and this id
-- $limit       integer         most rows
-- $offset      integer = 0     rows to skip
--
-- returns: every column of traces; in order
with listed as (
    select unnest($trace_ids) as trace_id
),

of_account as (
    select trace_id
    from transaction_traces
    where
        workchain = $workchain
        and account = $account
),

picked as (
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
    where trace_id in (select trace_id from either($account is null, 'listed', 'of_account'))
)

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
from either($trace_ids is null and $account is null, 'traces', 'picked')
where
    ($mc_seqno is null or (mc_seqno_end = $mc_seqno and state = 'complete'))
    and in_range(end_utime, $start_utime, $end_utime)
    and in_range(end_lt, $start_lt, $end_lt)
    and comes_after(
        (if($by_time, end_utime, end_lt), trace_id),
        ($after_end, $after_id),
        $after_end,
        $descending
    )
order by
    case when $descending then if($by_time, end_utime, end_lt) end desc,
    case when not $descending then if($by_time, end_utime, end_lt) end,
    case when $descending then trace_id end desc,
    case when not $descending then trace_id end
limit $limit
offset $offset

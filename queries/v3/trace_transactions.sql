-- The transactions of some traces.
--
-- $trace_ids blob[]  the traces
-- $first_lt  bigint  lowest logical time among their transactions
-- $last_lt   bigint  highest logical time among their transactions
--
-- returns: hash, lt, trace_id, parent_hash; by trace, then ascending logical time, then account
select
    hash,
    lt,
    trace_id,
    parent_hash
from transaction_traces
where
    lt between $first_lt and $last_lt
    and in_list(trace_id, $trace_ids::blob[])
order by
    trace_id,
    lt,
    workchain,
    account

-- The messages from outside that began some traces.
--
-- $trace_ids blob[]  the traces
--
-- returns: trace_id, external_hash_norm; traces that began otherwise are left out
select
    trace_id,
    external_hash_norm
from traces
where
    in_list(trace_id, $trace_ids)
    and external_hash_norm is not null

-- The normalized hashes of the external messages that started some traces.
--
-- $trace_ids blob[]  the traces
--
-- returns: trace_id, external_hash_norm; traces without an external message are left out
select
    trace_id,
    external_hash_norm
from traces
where
    in_list(trace_id, $trace_ids::blob[])
    and external_hash_norm is not null

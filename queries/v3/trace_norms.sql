-- The hashes of the messages that started some traces.
--
-- $trace_ids blob[]  the traces
--
-- returns: trace_id, external_hash, external_hash_norm; the last for messages from outside
select
    trace_id,
    external_hash,
    external_hash_norm
from traces
where in_list(trace_id, $trace_ids::blob[])

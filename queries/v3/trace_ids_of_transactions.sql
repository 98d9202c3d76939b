-- The traces that some transactions belong to.
--
-- $hashes blob[]  hashes of the transactions
--
-- returns: trace_id, each once; in no order
select distinct trace_id
from transaction_traces
where in_list(hash, $hashes::blob[])

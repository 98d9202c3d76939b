-- The traces of some messages; an external message may have started several.
--
-- $msg_hashes blob[]  hashes of the messages, as stored or normalized
--
-- returns: trace_id, each once; in no order
with ends as (
    select
        tx_hash,
        tx_lt
    from messages
    where
        in_list(msg_hash, $msg_hashes::blob[])
        or in_list(hash_norm, $msg_hashes::blob[])
)

select distinct traced.trace_id
from ends
inner join transaction_traces as traced on ends.tx_hash = traced.hash and ends.tx_lt = traced.lt

-- The trace of each of some transactions.
--
-- $hashes   blob[]  hashes of the transactions
-- $first_lt bigint  lowest logical time among them
-- $last_lt  bigint  highest logical time among them
--
-- returns: hash, trace_id; in no order
select
    hash,
    trace_id
from transaction_traces
where
    lt between $first_lt and $last_lt
    and in_list(hash, $hashes::blob[])

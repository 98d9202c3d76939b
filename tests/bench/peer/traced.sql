-- Transactions and messages with the trace they belong to, which the peer keeps with each row.
create temp view bench_transactions as
select transactions.*, transaction_traces.trace_id
from transactions
left join transaction_traces using (hash);
create temp view bench_messages as
select messages.*, transaction_traces.trace_id
from messages
left join transaction_traces on transaction_traces.hash = messages.tx_hash;

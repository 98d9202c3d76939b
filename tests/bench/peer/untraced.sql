-- Transactions and messages of a lake that has no traces.
create temp view bench_transactions as
select *, null::blob as trace_id from transactions;
create temp view bench_messages as
select *, null::blob as trace_id from messages;

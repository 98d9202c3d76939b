-- Messages with the trace of the transaction that consumed or produced them.
create or replace view traced_messages as
select
    messages.* exclude (day),
    transaction_traces.trace_id,
    messages.day
from each_message('messages') as messages
left join transaction_traces
    on messages.tx_hash = transaction_traces.hash and messages.tx_lt = transaction_traces.lt;

comment on column traced_messages.trace_id is 'Hash of the trace''s root transaction';

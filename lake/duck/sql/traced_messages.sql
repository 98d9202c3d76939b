-- Messages with the trace of the transaction that consumed or produced them.
create or replace view traced_messages as
select
    messages.* exclude (day),
    transaction_traces.trace_id,
    messages.day
from each_message('messages') as messages
left join transaction_traces
    on messages.tx_account = transaction_traces.account
    and messages.tx_lt = transaction_traces.lt
    and messages.tx_workchain = transaction_traces.workchain
    and messages.mc_seqno = transaction_traces.mc_seqno -- many
    and messages.day = transaction_traces.day;

comment on column traced_messages.trace_id is 'Hash of the trace''s root transaction';

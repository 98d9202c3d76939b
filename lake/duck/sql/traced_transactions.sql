-- Transactions with their trace, their parent in it, and the kind of the message between them.
create or replace view traced_transactions as
select
    transactions.* exclude (day),
    transaction_traces.trace_id, -- part: edge
    transaction_traces.parent_hash, -- part: edge
    transaction_traces.edge, -- part: edge
    transactions.day
from transactions
-- As in each_move, unless traces are asked for.
semi join (select unnest([true, false]) as ended) as either -- part: by_trace
    on coalesce(aborted, false) = ended
left join transaction_traces -- part: edge
    on transactions.account = transaction_traces.account
    and transactions.lt = transaction_traces.lt
    and transactions.workchain = transaction_traces.workchain
    and transactions.mc_seqno = transaction_traces.mc_seqno -- many
    and transactions.day = transaction_traces.day
;

comment on column traced_transactions.trace_id is 'Hash of the trace''s root transaction'; -- part: edge

comment on column traced_transactions.parent_hash is 'Transaction that sent the in message, where indexed'; -- part: edge

comment on column traced_transactions.edge is 'In message: ext (from outside), sys (made by the validators), ord (from a contract)'; -- part: edge

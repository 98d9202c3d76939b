-- Traces, as those that the peer's classifier is done with.
select
    peer_hash(trace_id) as trace_id,
    peer_hash(external_hash) as external_hash,
    peer_hash(external_hash_norm) as external_hash_norm,
    mc_seqno_start,
    mc_seqno_end,
    start_lt,
    start_utime,
    end_lt,
    end_utime,
    state,
    pending_messages as pending_edges_,
    messages as edges_,
    transactions as nodes_,
    'ok' as classification_state
from traces

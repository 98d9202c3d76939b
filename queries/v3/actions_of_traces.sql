-- All actions of some traces, in the order of their messages.
--
-- $trace_ids    blob[]   the traces
-- $first_lt     bigint   least end of these traces
-- $last_lt      bigint   greatest end of these traces
-- $types        text[]   types that are wanted
-- $hidden_under text[]   types around an action that hide it
--
-- returns: the columns of actions
select
    trace_id,
    action_id,
    type,
    success,
    start_lt,
    end_lt,
    start_utime,
    end_utime,
    mc_seqno_end,
    mc_seqno,
    trace_end_lt,
    trace_end_utime,
    trace_external_hash,
    trace_external_hash_norm,
    tx_hashes,
    accounts,
    source,
    source_secondary,
    destination,
    destination_secondary,
    asset,
    asset_secondary,
    asset2,
    asset2_secondary,
    opcode,
    amount,
    value,
    value_extra_currencies,
    details,
    parent_action_id,
    ancestor_type,
    rule,
    classifier_version
from actions
where
    trace_end_lt between $first_lt and $last_lt
    and trace_id in (select unnest($trace_ids::blob[]))
    and type in (select unnest($types::text[]))
    and not list_has_any(ancestor_type, $hidden_under::text[])
order by start_lt, end_lt, action_id

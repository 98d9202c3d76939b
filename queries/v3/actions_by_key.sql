-- Some actions, read from where their traces ended.
--
-- $mc_seqnos  bigint[]  masterchain blocks that commit their last transactions
-- $trace_ends bigint[]  greatest logical times of their traces
-- $action_ids blob[]    their ids
--
-- returns: the columns of actions; in no order
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
    mc_seqno in (select unnest($mc_seqnos::bigint[]))
    and trace_end_lt in (select unnest($trace_ends::bigint[]))
    and action_id in (select unnest($action_ids::blob[]))

-- All actions of some traces, in the order of their messages.
--
-- $trace_ids    blob[]   the traces
-- $first_lt     bigint   least end of these traces
-- $last_lt      bigint   greatest end of these traces
-- $types        text[]   types that are wanted
-- $hidden_under text[]   types around an action that hide it
--
-- returns: the columns of actions
select *
from actions
where
    trace_end_lt between $first_lt and $last_lt
    and trace_id in (select unnest($trace_ids::blob[]))
    and type in (select unnest($types::text[]))
    and not list_has_any(ancestor_type, $hidden_under::text[])
order by start_lt, end_lt, action_id

-- The transactions of one action.
--
-- $action_id blob  the action
--
-- returns: hash, lt, one row for each; ascending logical time, then account
select
    traced.hash,
    traced.lt
from actions
inner join transaction_traces as traced
    on
        traced.lt between actions.start_lt and actions.end_lt
        and list_contains(actions.tx_hashes, traced.hash)
where actions.action_id = $action_id
order by
    traced.lt,
    traced.workchain,
    traced.account

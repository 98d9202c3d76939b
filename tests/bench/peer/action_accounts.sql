-- Which account takes part in which action.
select distinct
    peer_hash(action_id) as action_id,
    peer_hash(trace_id) as trace_id,
    peer_address(workchain, account) as account,
    trace_end_lt,
    end_lt as action_end_lt,
    trace_end_utime,
    end_utime as action_end_utime
from action_accounts

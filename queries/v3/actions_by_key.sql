-- Actions by key.
--
-- $mc_seqnos  bigint[]  masterchain blocks that commit their last transactions
-- $trace_ends bigint[]  greatest logical times of their traces
-- $action_ids blob[]    their ids
--
-- returns: the columns of actions; in no order
from action_rows('actions')
where
    in_list(mc_seqno, $mc_seqnos::bigint[])
    and in_list(trace_end_lt, $trace_ends::bigint[])
    and in_list(action_id, $action_ids::blob[])

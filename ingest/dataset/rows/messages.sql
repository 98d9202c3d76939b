select *
from messages
where mc_seqno between $first and $last
order by tx_lt, tx_workchain, tx_account, direction, msg_index

select *
from account_states
where mc_seqno between $first and $last

select *
from part.account_states
where mc_seqno between $first and $last
order by mc_seqno

select *
from blocks
where mc_seqno between $first and $last

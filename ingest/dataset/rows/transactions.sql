select *
from part.transactions
where mc_seqno between $first and $last

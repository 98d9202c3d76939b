select *
from part.blocks
where mc_seqno between $first and $last

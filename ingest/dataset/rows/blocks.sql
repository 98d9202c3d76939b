select *
from blocks
where
    mc_seqno between $first and $last
    and mc_seqno not in (select mc_seqno from flaws)

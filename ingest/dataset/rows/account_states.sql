select *
from account_states
where
    mc_seqno between $first and $last
    and greatest(mc_seqno, 1) not in (select mc_seqno from flaws)

select *
from account_states
where mc_seqno between $first and $last
order by workchain, account, mc_seqno, block_seqno

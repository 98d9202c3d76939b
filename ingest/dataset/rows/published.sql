-- SETLIBCODE is a special action; what it publishes was sent, mostly as data beside the code.
select
    transactions.mc_seqno,
    unnest([1, 0]) as codes,
    unnest([init_state, body]) as bag
from transactions
join messages on transactions.hash = messages.tx_hash
where
    transactions.mc_seqno between $first and $last
    and messages.mc_seqno between $first and $last
    and transactions.mc_seqno not in (select mc_seqno from flaws)
    and workchain = -1
    and action_spec_actions > 0
    and direction = 'in'

-- Out messages are numbered by logical time: here, as a window over a whole day takes much memory.
select
    *,
    row_number() over (partition by tx_hash, direction order by created_lt) - 1 as msg_index
from part.messages
where mc_seqno between $first and $last
order by tx_lt, tx_workchain, tx_account, direction, msg_index

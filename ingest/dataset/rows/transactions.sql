-- Transactions, with columns from their messages.
select
    transactions.*,
    coalesce(ends.outmsg_cnt, 0) as outmsg_cnt,
    ends.in_msg_hash
from part.transactions
left join (
    select
        tx_hash,
        count(*) filter (direction = 'out') as outmsg_cnt,
        any_value(msg_hash) filter (direction = 'in') as in_msg_hash
    from part.messages
    where mc_seqno between $first and $last
    group by tx_hash
) as ends on transactions.hash = ends.tx_hash
where mc_seqno between $first and $last
order by transactions.lt, transactions.workchain, transactions.account

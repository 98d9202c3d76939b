-- The accounts that an account exchanged most transfers with.
--
-- $account address = null  account; null: the wallet that received most external messages
-- $limit   integer = 50    maximum number of rows
--
-- chart: bar x=address y=transfers_in,transfers_out
-- returns: address, label, transfers_in, transfers_out, received_ton, sent_ton (value in TON, where
-- known), last_time; most transfers first
with moved as (
    select
        sender_id = account and sender_workchain = workchain as outgoing,
        recipient_id = account and recipient_workchain = workchain as incoming,
        if(outgoing, recipient, sender) as address,
        if(outgoing, recipient_label, sender_label) as label,
        value_ton,
        time
    from v_transfers
    cross join account_or_busiest($account, 'messages')
    where incoming or outgoing
)

select
    address,
    label,
    count(*) filter (where incoming) as transfers_in,
    count(*) filter (where outgoing) as transfers_out,
    if(transfers_in = 0, 0, sum(value_ton) filter (where incoming)) as received_ton,
    if(transfers_out = 0, 0, sum(value_ton) filter (where outgoing)) as sent_ton,
    max(time) as last_time
from moved
group by address, label
order by
    count(*) desc,
    address
limit $limit

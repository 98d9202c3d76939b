-- Amounts that an account received and sent, by asset.
--
-- $account address = null  account; null: the wallet that received most external messages
-- $first   date    = null  first UTC day; null: of the lake
-- $last    date    = null  last UTC day; null: of the lake
--
-- chart: bar x=symbol y=received,sent
-- returns: kind, asset, symbol, transfers_in, received, transfers_out, sent, net, first_time,
-- last_time; most transfers first; amounts in whole units
with moved as (
    select
        kind,
        if(kind = 'nft', null, asset) as asset,
        symbol,
        amount,
        time,
        recipient_id = account and recipient_workchain = workchain as incoming,
        sender_id = account and sender_workchain = workchain as outgoing
    from v_transfers
    cross join account_or_busiest($account, 'messages')
    where (incoming or outgoing) and in_range(time::date, $first, $last)
)

select
    kind,
    asset,
    symbol,
    count(*) filter (where incoming) as transfers_in,
    coalesce(sum(amount) filter (where incoming), 0) as received,
    count(*) filter (where outgoing) as transfers_out,
    coalesce(sum(amount) filter (where outgoing), 0) as sent,
    received - sent as net,
    min(time) as first_time,
    max(time) as last_time
from moved
group by kind, asset, symbol
order by
    transfers_in + transfers_out desc,
    kind,
    asset,
    symbol

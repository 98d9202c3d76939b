-- What an account received and sent, by asset.
--
-- $account address = null  account; null: the one with most transactions
-- $first   date    = null  first UTC day; null: of the lake
-- $last    date    = null  last UTC day; null: of the lake
--
-- chart: bar x=symbol y=received,sent
-- returns: kind, asset, symbol, transfers_in, received, transfers_out, sent, net, first_time,
-- last_time; most transfers first; amounts in whole units
with asked as (
    select coalesce($account, busiest) as address
    from (
        select ton_address(workchain, account) as busiest
        from transactions
        group by workchain, account
        order by
            count(*) desc,
            account
        limit 1
    )
),

keyed as (
    select
        ton_workchain(address) as workchain,
        ton_account(address) as account
    from asked
),

moved as (
    select
        kind,
        if(kind = 'nft', null, asset) as asset,
        symbol,
        amount,
        time,
        recipient_id = account and recipient_workchain = workchain as incoming,
        sender_id = account and sender_workchain = workchain as outgoing
    from v_transfers
    cross join keyed
    where
        (
            (recipient_id = account and recipient_workchain = workchain)
            or (sender_id = account and sender_workchain = workchain)
        )
        and in_range(time::date, $first, $last)
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

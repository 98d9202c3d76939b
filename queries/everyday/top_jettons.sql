-- Jettons by transfers, with their volume and holders.
--
-- $first date    = null  first UTC day of the transfers; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- chart: bar x=jetton y=transfers
-- returns: jetton, symbol, transfers, senders, recipients, amount, value_ton, holders at the
-- end of the lake; most transfers first
with moved as (
    select
        jetton,
        symbol,
        jetton_workchain,
        jetton_id,
        count(*) as transfers,
        count(distinct sender_id) as senders,
        count(distinct recipient_id) as recipients,
        sum(amount) as amount,
        sum(value_ton) as value_ton
    from v_jetton_transfers
    where success and kind = 'transfer' and in_days(time, $first, $last)
    group by jetton, symbol, jetton_workchain, jetton_id
),

held as (
    select
        jetton_workchain,
        jetton,
        count(distinct owner) as holders
    from latest_jetton_wallets
    where balance > 0
    group by jetton_workchain, jetton
)

select
    moved.jetton,
    symbol,
    transfers,
    senders,
    recipients,
    amount,
    value_ton,
    coalesce(holders, 0) as holders
from moved
left join held
    on moved.jetton_id = held.jetton and moved.jetton_workchain = held.jetton_workchain
order by
    transfers desc,
    moved.jetton
limit $limit

-- Amounts that an account received and sent by transfers, by asset; jettons minted to it are in
-- v_jetton_transfers, burnt ones in jetton_burns.
--
-- $account address = null  account; null: the wallet that received most external messages
-- $first   date    = null  first UTC day; null: of the lake
-- $last    date    = null  last UTC day; null: of the lake
--
-- chart: bar x=symbol y=received,sent
-- returns: kind, asset, symbol, transfers_in, received, transfers_out, sent, net, first_time,
-- last_time; most transfers first; amounts in whole units, NULL if the decimals are unknown
with asked as (
    from account_or_busiest($account, 'messages')
),

moves as not materialized (
    from moved_assets(
        'messages',
        'jetton_transfers',
        'nft_transfers',
        'v_jettons',
        'dex_prices',
        'nft_collections'
    )
)

select
    kind,
    if(kind = 'nft', null, asset) as asset,
    symbol,
    count(*) filter (where incoming) as transfers_in,
    if(transfers_in = 0, 0, sum(amount) filter (where incoming)) as received,
    count(*) filter (where outgoing) as transfers_out,
    if(transfers_out = 0, 0, sum(amount) filter (where outgoing)) as sent,
    received - sent as net,
    min(time) as first_time,
    max(time) as last_time
from moves_of('moves', 'asked')
where in_days(time, $first, $last)
group by kind, if(kind = 'nft', null, asset), symbol
order by
    transfers_in + transfers_out desc,
    kind,
    2,
    symbol

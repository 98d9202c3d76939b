-- Transfers into and out of bridges, by day.
--
-- Bridges are the accounts labelled with the category bridge; [lake] labels may name more.
--
-- $first date = null  first UTC day; null: of the lake
-- $last  date = null  last UTC day; null: of the lake
--
-- chart: bar x=date y=received by=bridge
-- returns: date, bridge, kind, symbol, transfers_in, received, transfers_out, sent; newest first;
-- amounts in whole units, NULL if the decimals are unknown
with moves as not materialized (
    from moved_assets(
        'messages',
        'jetton_transfers',
        'nft_transfers',
        'v_jettons',
        'dex_prices',
        'nft_collections'
    )
),

bridges as (
    select
        workchain,
        account,
        label
    from labels
    where category = 'bridge'
),

bridged as (
    select
        time::date as date,
        incoming,
        if(incoming, destination_workchain, source_workchain) as workchain,
        if(incoming, destination, source) as account,
        kind,
        symbol,
        amount
    from moves_of('moves', 'bridges')
    where
        in_days(time, $first, $last)
        and (
            incoming
            or (destination_workchain, destination) not in (select workchain, account from bridges)
        )
)

select
    date,
    label as bridge,
    kind,
    symbol,
    count(*) filter (where incoming) as transfers_in,
    if(transfers_in = 0, 0, sum(amount) filter (where incoming)) as received,
    count(*) filter (where not incoming) as transfers_out,
    if(transfers_out = 0, 0, sum(amount) filter (where not incoming)) as sent
from bridged
join bridges using (workchain, account)
group by date, bridge, kind, symbol
order by
    date desc,
    bridge,
    kind,
    symbol

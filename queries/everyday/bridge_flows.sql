-- Transfers into and out of bridges, by day.
--
-- Bridges are the accounts labelled with the category bridge; [lake] labels may name more.
--
-- $first date = null  first UTC day; null: of the lake
-- $last  date = null  last UTC day; null: of the lake
--
-- chart: bar x=date y=received by=bridge
-- returns: date, bridge, kind, symbol, transfers_in, received, transfers_out, sent; newest first
with bridges as (
    select list(address) as known
    from labels
    where category = 'bridge'
),

moved as (
    select
        time,
        list_contains(known, recipient) as incoming,
        if(incoming, recipient_label, sender_label) as bridge,
        kind,
        symbol,
        amount
    from v_transfers
    cross join bridges
    where incoming or list_contains(known, sender)
)

select
    time::date as date,
    bridge,
    kind,
    symbol,
    count(*) filter (where incoming) as transfers_in,
    coalesce(sum(amount) filter (where incoming), 0) as received,
    count(*) filter (where not incoming) as transfers_out,
    coalesce(sum(amount) filter (where not incoming), 0) as sent
from moved
where in_range(time::date, $first, $last)
group by date, bridge, kind, symbol
order by
    date desc,
    bridge,
    kind,
    symbol

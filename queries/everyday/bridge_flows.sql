-- What flows into and out of bridges, by day.
--
-- Bridges are the accounts labelled with the category bridge; [lake] labels may name more.
--
-- $first date = null  first UTC day; null: of the lake
-- $last  date = null  last UTC day; null: of the lake
--
-- chart: bar x=date y=received by=bridge
-- returns: date, bridge, kind, symbol, transfers_in, received, transfers_out, sent; newest first
with moved as (
    select
        time,
        recipient_label as bridge,
        kind,
        symbol,
        amount,
        true as incoming
    from v_transfers
    join labels
        on recipient_id = labels.account and recipient_workchain = labels.workchain
    where category = 'bridge'
    union all
    select
        time,
        sender_label as bridge,
        kind,
        symbol,
        amount,
        false as incoming
    from v_transfers
    join labels on sender_id = labels.account and sender_workchain = labels.workchain
    where category = 'bridge'
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

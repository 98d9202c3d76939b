-- Accounts that swapped most.
--
-- $first date = null   first UTC day; null: of the lake
-- $last  date = null   last UTC day; null: of the lake
-- $limit integer = 50  maximum number of rows
--
-- chart: bar x=sender y=volume_ton
-- returns: sender, sender_label, swaps, failed, volume_ton; most volume first
select
    sender,
    sender_label,
    count(*) filter (where success) as swaps,
    count(*) filter (where not success) as failed,
    sum(value_ton) filter (where success) as volume_ton
from v_swaps
where in_days(time, $first, $last)
group by sender, sender_label
order by
    volume_ton desc nulls last,
    swaps desc,
    sender
limit $limit

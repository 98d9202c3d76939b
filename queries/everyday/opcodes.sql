-- Messages by opcode, with its name if known.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- chart: bar x=opcode y=messages
-- returns: opcode, opcode_name, messages, senders, recipients, amount; most frequent first; amount
-- in TON
select
    ton_opcode(opcode) as opcode,
    any_value(opcode_name) as opcode_name,
    count(*) as messages,
    count(distinct sender) as senders,
    count(distinct recipient) as recipients,
    sum(amount) as amount
from v_messages
where opcode is not null and in_range(time::date, $first, $last)
group by opcode
order by
    messages desc,
    opcode
limit $limit

-- Messages by opcode, with its name if known.
--
-- $first date    = null  first UTC day; null: of the lake
-- $last  date    = null  last UTC day; null: of the lake
-- $limit integer = 50    maximum number of rows
--
-- chart: bar x=opcode y=messages
-- returns: opcode, opcode_name, messages, senders, recipients, amount; most frequent first; amount
-- in TON
with delivered as (
    select
        opcode,
        value,
        source_workchain,
        source,
        destination_workchain,
        destination
    from one_end('messages')
    where opcode is not null and in_days(tx_time, $first, $last)
),

-- Each distinct count apart: with sums beside it, it takes twice as long.
counted as (
    select
        opcode,
        count(*) as messages,
        ton_scaled(sum(value), 9) as amount
    from delivered
    group by opcode
),

ends as (
    select
        opcode,
        count(distinct (source_workchain, source)) filter (where source is not null) as senders,
        count(distinct (destination_workchain, destination)) filter (
            where destination is not null
        ) as recipients
    from delivered
    group by opcode
),

most as (
    from counted
    order by
        messages desc,
        ton_opcode(opcode)
    limit $limit
),

named as (
    select
        opcode,
        any_value(decoded_opcode) as opcode_name
    from messages
    join message_bodies as bodies
        on messages.body_hash = bodies.body_hash
        and messages.mc_seqno = bodies.mc_seqno
        and messages.day = bodies.day
        and (kind = 'ext_in') = external_in
    where
        opcode in (select opcode from most)
        and in_days(tx_time, $first, $last)
        and decoded_opcode is not null
    group by opcode
)

select
    ton_opcode(opcode) as opcode,
    opcode_name,
    messages,
    senders,
    recipients,
    amount
from most
join ends using (opcode)
left join named using (opcode)
order by
    messages desc,
    ton_opcode(most.opcode)

create or replace view v_messages as
with ends as not materialized (
    from one_end('messages') -- or one_end_of, for one account, or one_end_of_trace
),
moved as not materialized (
    select
        ends.*,
        senders.label as sender_label, -- part: label
        recipients.label as recipient_label, -- part: label
    from with_addresses('ends') as ends
    left join label_of('labels') as senders -- part: label
        on sender_id = senders.account and sender_workchain = senders.workchain
    left join label_of('labels') as recipients -- part: label
        on recipient_id = recipients.account and recipient_workchain = recipients.workchain
)
select
    tx_time as time,
    kind,
    msg_hash,
    tx_hash,
    tx_lt,
    trace_id, -- part: trace
    sender,
    sender_workchain,
    sender_id,
    sender_label, -- part: label
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label, -- part: label
    ton_coins(value)::decimal(38, 9) as amount,
    value as amount_units,
    value_extra_currencies as extra_currencies,
    bounced,
    direction = 'in' or kind = 'ext_out' as delivered,
    opcode,
    bodies.decoded_opcode as opcode_name, -- part: body
    case when kind <> 'ext_in' then body_comment(bodies.decoded_opcode, bodies.decoded) end as comment, -- part: comment
    bodies.decoded as body, -- part: body
    messages.body_hash,
    created_lt,
    messages.mc_seqno,
    messages.day
from moved as messages
-- As in each_message, for the joins below.
semi join (select unnest(['in', 'out']) as direction) as either using (direction) -- part: looked_up
left join message_bodies as bodies -- part: body
    on messages.mc_seqno = bodies.mc_seqno
    and messages.body_hash = bodies.body_hash -- bounded
    and messages.day = bodies.day -- bounded
    and (messages.kind = 'ext_in') = bodies.external_in -- bounded
left join transaction_traces as traced -- part: joined_trace
    on messages.tx_lt = traced.lt
    and messages.tx_account = traced.account
    and messages.tx_workchain = traced.workchain
    and messages.mc_seqno = traced.mc_seqno -- many
    and messages.day = traced.day
;

create or replace view v_messages as
with ends as not materialized (
    -- One scan of all ends. A left join, not an anti join: the few messages that a filter leaves
    -- prune the other side. The time, which may overflow, where no column is computed yet.
    select
        ends.*,
        ton_time(ends.now) as time
    from each_message('messages') as ends
    left join messages as consumed
        on ends.msg_hash = consumed.msg_hash
        and ends.created_lt = consumed.created_lt
        and ends.direction > consumed.direction
    where ends.direction = 'in' or ends.kind = 'ext_out' or consumed.tx_lt is null
),
moved as not materialized (
    from with_ends('ends')
)
select
    time,
    kind,
    msg_hash,
    tx_hash,
    tx_lt,
    trace_id,
    sender,
    sender_workchain,
    sender_id,
    sender_label,
    recipient,
    recipient_workchain,
    recipient_id,
    recipient_label,
    ton_coins(value)::decimal(38, 9) as amount,
    value as amount_units,
    value_extra_currencies as extra_currencies,
    bounced,
    direction = 'in' or kind = 'ext_out' as delivered,
    opcode,
    bodies.decoded_opcode as opcode_name,
    case when kind <> 'ext_in' then body_comment(bodies.decoded_opcode, bodies.decoded) end as comment,
    bodies.decoded as body,
    messages.body_hash,
    created_lt,
    messages.mc_seqno,
    messages.day
from each_message('moved') as messages
left join transaction_traces as traced
    on messages.tx_account = traced.account
    and messages.tx_lt = traced.lt
    and messages.tx_workchain = traced.workchain
    and messages.mc_seqno = traced.mc_seqno
    and messages.day = traced.day
left join message_bodies as bodies
    on messages.body_hash = bodies.body_hash
    and messages.mc_seqno = bodies.mc_seqno
    and messages.day = bodies.day
    and (messages.kind = 'ext_in') = bodies.external_in;

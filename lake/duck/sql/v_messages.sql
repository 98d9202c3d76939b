create or replace view v_messages as
with ends as not materialized (
    from messages
    where direction = 'in' or kind = 'ext_out'
    union all
    from messages as sent
    anti join (
        select msg_hash
        from messages
        where direction = 'in'
    ) as consumed
        on sent.msg_hash = consumed.msg_hash
    where direction = 'out' and kind = 'int'
)
select
    ton_time(now) as time,
    kind,
    msg_hash,
    tx_hash,
    tx_lt,
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
    bodies.opcode_name,
    comments.comment,
    bodies.body,
    messages.body_hash,
    created_lt,
    mc_seqno,
    day
from with_ends('ends') as messages
left join (
    select
        body_hash as decoded_hash,
        external_in,
        any_value(decoded_opcode) as opcode_name,
        any_value(decoded) as body
    from message_bodies
    group by body_hash, external_in
) as bodies
    on messages.body_hash = bodies.decoded_hash
    and (messages.kind = 'ext_in') = bodies.external_in
left join v_comments as comments
    on messages.body_hash = comments.body_hash and messages.kind <> 'ext_in';

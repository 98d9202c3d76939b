-- Messages with their decoded bodies; a body decoded at one end of a message is shown at
-- both. For files older than message_bodies, run `tonlake rebuild bodies` once.
create or replace view decoded_messages as
select
    messages.* exclude (day),
    bodies.decoded_opcode,
    bodies.decoded,
    messages.day
from messages
left join (
    select
        body_hash,
        external_in,
        any_value(decoded_opcode) as decoded_opcode,
        any_value(decoded) as decoded
    from message_bodies
    group by body_hash, external_in
) as bodies
    on messages.body_hash = bodies.body_hash
    and (messages.kind = 'ext_in') = bodies.external_in;

comment on column decoded_messages.decoded_opcode is 'Name of the opcode; NULL where none is known';

comment on column decoded_messages.decoded is
    'The decoded body; NULL where it fits no layout';

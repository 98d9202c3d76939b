-- Messages with their decoded bodies. For files older than message_bodies, run
-- `tonlake rebuild bodies` once.
create or replace view decoded_messages as
select
    messages.* exclude (day),
    bodies.decoded_opcode,
    bodies.decoded,
    messages.day
from each_message('messages') as messages
left join message_bodies as bodies
    on messages.mc_seqno = bodies.mc_seqno
    and messages.body_hash = bodies.body_hash -- bounded
    and messages.day = bodies.day -- bounded
    and (messages.kind = 'ext_in') = bodies.external_in -- bounded
;

comment on column decoded_messages.decoded_opcode is 'Name of the opcode; NULL where none is known';

comment on column decoded_messages.decoded is
    'The decoded body; NULL where it fits no layout';

create or replace view v_comments as
select
    body_hash,
    decoded_opcode as opcode_name,
    any_value(body_comment(decoded_opcode, decoded)) as comment
from message_bodies
where not external_in and body_comment(decoded_opcode, decoded) is not null
group by body_hash, decoded_opcode;

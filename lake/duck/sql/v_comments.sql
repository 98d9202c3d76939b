create or replace view v_comments as
select
    body_hash,
    decoded_opcode as opcode_name,
    any_value(
        case
            when decoded_opcode = 'text_comment' then decoded ->> '$.comment'
            else decoded ->> '$.forward_payload.value.text'
        end
    ) as comment
from message_bodies
where
    not external_in
    and (
        decoded_opcode = 'text_comment'
        or (
            decoded_opcode in (
                'jetton_transfer',
                'jetton_internal_transfer',
                'jetton_notify',
                'nft_transfer',
                'nft_ownership_assigned'
            )
            and (decoded ->> '$.forward_payload.value."@type"') = 'text_comment'
        )
    )
group by body_hash, decoded_opcode;

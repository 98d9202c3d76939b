"""Table of decoded message bodies."""

from tonlake.lake.schema.column import Column, Table, optional

MESSAGE_BODIES = Table(
    name="message_bodies",
    doc=(
        "One row per distinct message body of a masterchain block, decoded by its TL-B layout. "
        "Join on mc_seqno, body_hash and external_in (messages.kind = 'ext_in'). Files of older "
        "versions have a row for the first block of a file alone: there, join without mc_seqno."
    ),
    key=("body_hash", "external_in", "mc_seqno"),
    sort=("body_hash", "external_in", "mc_seqno"),
    columns=(
        Column("body_hash", "hash", "Hash of the body cell"),
        Column("external_in", "bool", "External-in message: decoded by wallet layouts"),
        Column("mc_seqno", "int64", "Masterchain block with such a message"),
        *optional(
            Column("decoded_opcode", "text", "Name of the opcode; NULL if unknown"),
            Column("decoded", "json", "The decoded body; NULL if no layout matches"),
        ),
    ),
)

"""Table of decoded message bodies."""

from tonlake.lake.schema.column import Column, Table, optional

MESSAGE_BODIES = Table(
    name="message_bodies",
    doc=(
        "One row per distinct message body of a file, decoded by its TL-B layout. Join on "
        "body_hash and external_in (messages.kind = 'ext_in'); rows of the same body are equal "
        "in all files."
    ),
    key=("body_hash", "external_in", "mc_seqno"),
    sort=("body_hash", "external_in", "mc_seqno"),
    columns=(
        Column("body_hash", "hash", "Hash of the body cell"),
        Column("external_in", "bool", "External-in message: decoded by wallet layouts"),
        Column("mc_seqno", "int64", "First masterchain block of the file with such a message"),
        *optional(
            Column("decoded_opcode", "text", "Name of the opcode; NULL if unknown"),
            Column("decoded", "json", "The decoded body; NULL if no layout matches"),
        ),
    ),
)

"""Table of decoded message bodies, made by ``tonlake rebuild bodies`` where somebody wants it."""

from lake.schema.column import Column, Table, optional

MESSAGE_BODIES = Table(
    name="message_bodies",
    doc=(
        "One row per body that messages of a file have: what its layout says. Join by body_hash "
        "and external_in (messages.kind = 'ext_in'); every file that has a body says the same of "
        "it. Blocks have rows once `tonlake rebuild bodies` was run over them."
    ),
    key=("body_hash", "external_in", "mc_seqno"),
    sort=("body_hash", "external_in", "mc_seqno"),
    columns=(
        Column("body_hash", "hash", "Hash of the body cell"),
        Column("external_in", "bool", "Body of a message from outside, which wallets read"),
        Column("mc_seqno", "int64", "First masterchain block of the file that has a message of it"),
        *optional(
            Column("decoded_opcode", "text", "Name of its opcode; NULL where none is known"),
            Column("decoded", "json", "The decoded object; NULL where the body fits no layout"),
        ),
    ),
)

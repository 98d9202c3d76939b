"""Table of messages: one row per transaction and direction. TL-B: message$_, CommonMsgInfo."""

from tonlake.lake.schema.column import Column, Table, optional

MESSAGES = Table(
    name="messages",
    doc=(
        "One row per message and transaction: 'in' where consumed, 'out' where produced. The view "
        "traced_messages joins the trace (transaction_traces: tx_hash = hash, tx_lt = lt), "
        "decoded_messages the decoded body (message_bodies)."
    ),
    key=("tx_hash", "direction", "msg_index"),
    sort=("tx_lt", "tx_workchain", "tx_account", "direction", "msg_index"),
    columns=(
        Column("tx_workchain", "int32", "Workchain of the transaction's account"),
        Column("tx_account", "hash", "Account of the transaction"),
        Column("tx_lt", "int64", "Logical time of the transaction"),
        Column("tx_hash", "hash", "Hash of the transaction"),
        Column("mc_seqno", "int64", "Masterchain block that commits the transaction"),
        Column("now", "int64", "Unix seconds of the transaction"),
        Column("direction", "text", "in or out"),
        Column("msg_index", "int32", "Index among the out messages, from 0; 0 for in"),
        Column("msg_hash", "hash", "Hash of the message cell as stored in the transaction"),
        Column("hash_norm", "hash", "ext_in: hash of the normal form (TEP-467)", nullable=True),
        Column("kind", "text", "int, ext_in or ext_out"),
        *optional(
            Column("source_workchain", "int32", "Workchain of the source"),
            Column("source", "hash", "Source account id; NULL unless source_kind is std"),
        ),
        Column("source_kind", "text", "std, none, extern or var (MsgAddress constructor)"),
        *optional(
            Column("destination_workchain", "int32", "Workchain of the destination"),
            Column("destination", "hash", "Destination; NULL unless destination_kind is std"),
        ),
        Column(
            "destination_kind",
            "text",
            "std, none, extern or var (MsgAddress constructor)",
            nullable=True,
        ),
        *optional(
            Column("value", "int64", "int: value in nanoton"),
            Column("value_extra_currencies", "json", "int: extra currencies, id to amount"),
            Column("fwd_fee", "int64", "int: remaining forward fee, nanoton"),
            Column("ihr_fee", "int64", "int: IHR fee; 0 from global version 12 (ConfigParam 8)"),
            Column(
                "extra_flags",
                "amount",
                "int: extra_flags, from global version 12 (ConfigParam 8)",
            ),
            Column("created_lt", "int64", "int and ext_out: logical time of creation"),
            Column("created_at", "int64", "int and ext_out: unix seconds of creation"),
            Column("ihr_disabled", "bool", "int: IHR is disabled"),
            Column("bounce", "bool", "int: bounce if processing fails"),
            Column("bounced", "bool", "int: this is a bounced message"),
            Column("import_fee", "int64", "ext_in: import fee; NULL above 2^63-1"),
            Column("opcode", "int32", "First 32 bits of the body, signed; NULL if shorter"),
        ),
        Column("body_hash", "hash", "Hash of the body cell"),
        Column("body", "bytes", "Body as bag of cells", nullable=True),
        *optional(
            Column("init_state_hash", "hash", "Hash of the StateInit cell"),
            Column("init_state", "bytes", "StateInit as bag of cells"),
        ),
    ),
)

"""Tables of traces, derived from transactions and messages: trees of transactions.

Their rows depend only on the base rows of the lake, not on the order of ingest: a commit replaces
the files whose rows it changes, and `tonlake rebuild traces` rewrites them to the same bytes.
"""

from tonlake.lake.schema.column import Column, Table, one_of, optional

TRANSACTION_TRACES = Table(
    name="transaction_traces",
    doc="One row per transaction: its trace and its edge to the parent.",
    key=("workchain", "account", "lt"),
    sort=("lt", "workchain", "account"),
    columns=(
        Column("workchain", "int32", "Workchain of the account"),
        Column("account", "hash", "Account id, 32 bytes"),
        Column("lt", "int64", "Logical time"),
        Column("hash", "hash", "Hash of the transaction"),
        Column("mc_seqno", "int64", "Masterchain block that commits the transaction"),
        Column("trace_id", "hash", "Hash of the trace's root transaction"),
        *optional(
            Column("parent_hash", "hash", "Transaction that sent the in message, if in the lake"),
            Column(
                "edge",
                "text",
                "In message: ext (external), sys (created by validators), ord (from a contract); "
                "NULL without one",
                values=("ext", "sys", "ord"),
            ),
        ),
    ),
)

TRACES = Table(
    name="traces",
    doc=(
        "One row per trace. Complete traces never change; the others are in a separate file that "
        "every commit replaces."
    ),
    key=("trace_id",),
    sort=("end_lt", "trace_id"),
    columns=(
        Column("trace_id", "hash", "Hash of the root transaction"),
        *optional(
            Column("external_hash", "hash", "Hash of the root's in message, of any kind"),
            Column("external_hash_norm", "hash", "Its normal form (TEP-467), if it is ext_in"),
        ),
        Column("mc_seqno_start", "int64", "First masterchain block that commits a transaction"),
        Column("mc_seqno_end", "int64", "Last masterchain block that commits a transaction"),
        Column("start_lt", "int64", "Least logical time of its transactions"),
        Column("end_lt", "int64", "Greatest logical time of its transactions"),
        Column("start_utime", "int64", "Unix seconds of its first transaction"),
        Column("end_utime", "int64", "Unix seconds of its last transaction"),
        Column(
            "state",
            "text",
            "complete; pending: messages are in flight; broken: began before the ingested blocks",
            values=("complete", "pending", "broken"),
        ),
        Column("transactions", "int64", "Number of transactions"),
        Column("messages", "int64", "Messages delivered, including the root's and external ones"),
        Column(
            "pending_messages", "int64", "Messages not yet consumed by a transaction in the lake"
        ),
    ),
)

OPEN_EDGES = Table(
    name="open_edges",
    doc=(
        "Internal messages with one end in the lake: sent but not consumed yet (out), or "
        "consumed but sent by no transaction in the lake (in). One file, replaced by every commit."
    ),
    key=("msg_hash", "created_lt", "direction"),
    sort=("created_lt", "msg_hash", "direction"),
    columns=(
        one_of("direction", "out", "in", doc="End in the lake"),
        Column("msg_hash", "hash", "Hash of the message"),
        Column("created_lt", "int64", "Logical time of creation"),
        Column("tx_hash", "hash", "Transaction at that end"),
        Column("trace_id", "hash", "Trace of that transaction"),
        Column("mc_seqno", "int64", "Masterchain block that commits that transaction"),
    ),
)

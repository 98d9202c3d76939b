"""The schema: the single definition of every table."""

from tonlake.lake.schema.action import ACTION_TABLES
from tonlake.lake.schema.column import ARROW_TYPES, Column, Table, make_table, one_of, optional
from tonlake.lake.schema.contract import CONTRACT_TABLES
from tonlake.lake.schema.transaction import (
    ACCOUNT_STATES,
    MESSAGE_BODIES,
    MESSAGES,
    STATE_CELLS,
    TRANSACTIONS,
)

BLOCK_KEY = (
    Column("workchain", "int32", "Workchain of the block; -1 is the masterchain"),
    Column("shard", "int64", "Shard id as signed 64-bit: prefix bits, a one, zeroes"),
    Column("seqno", "int64", "Sequence number inside the shard"),
)


def _block_table(name: str, doc: str, *columns: Column) -> Table:
    """Return a table with a row for each block."""
    mc_seqno = Column("mc_seqno", "int64", "Masterchain block that commits the block (or itself)")
    key = ("workchain", "shard", "seqno")
    sort = ("mc_seqno", *key)
    return make_table(name, doc, *BLOCK_KEY, mc_seqno, *columns, key=key, sort=sort)


BLOCKS = _block_table(
    "blocks",
    "One row per block: header (BlockInfo), identity and position in the chain.",
    Column("root_hash", "hash", "Hash of the block's root cell"),
    Column("file_hash", "hash", "SHA-256 of the block's bag of cells as stored"),
    Column("global_id", "int32", "Network id: -239 mainnet, -3 testnet"),
    Column("version", "int64", "BlockInfo.version"),
    Column("after_merge", "bool", "First block after its two child shards merged"),
    Column("before_split", "bool", "Last block before the shard splits"),
    Column("after_split", "bool", "First block of a shard created by a split"),
    Column("want_split", "bool", "The shard requests a split"),
    Column("want_merge", "bool", "The shard requests a merge"),
    Column("key_block", "bool", "Key block: a masterchain block with the configuration"),
    Column("vert_seqno_incr", "bool", "Block raises the vertical seqno (hard fork)"),
    Column("flags", "int32", "BlockInfo.flags; bit 0: gen_software present"),
    Column("vert_seqno", "int64", "Vertical sequence number"),
    Column("gen_utime", "int64", "Unix seconds at which the block was generated"),
    Column("time", "time", "gen_utime as UTC timestamp"),
    Column("start_lt", "int64", "First logical time of the block"),
    Column("end_lt", "int64", "Logical time after the block's last transaction"),
    Column("validator_list_hash_short", "int32", "Short hash of the validator set, signed"),
    Column("gen_catchain_seqno", "int64", "Catchain session"),
    Column("min_ref_mc_seqno", "int64", "Oldest masterchain block referenced"),
    Column("prev_key_block_seqno", "int64", "Last key block before this block"),
    *optional(
        Column("gen_software_version", "int64", "Global version of the collator's software"),
        Column("gen_software_capabilities", "int64", "Capability bits of that software"),
    ),
    Column("master_ref_seqno", "int64", "Masterchain block referenced; 0 in the masterchain"),
    Column("prev_shard", "int64", "Shard of the (left) previous block"),
    *optional(
        Column("prev_seqno", "int64", "Seqno of the (left) previous block"),
        Column("prev_root_hash", "hash", "Root hash of the (left) previous block"),
        Column("prev_file_hash", "hash", "File hash of the (left) previous block"),
        Column("prev2_shard", "int64", "Shard of the right previous block, after a merge"),
        Column("prev2_seqno", "int64", "Seqno of the right previous block, after a merge"),
        Column("prev2_root_hash", "hash", "Root hash of the right previous block"),
        Column("prev2_file_hash", "hash", "File hash of the right previous block"),
    ),
    Column(
        "state_root_hash",
        "hash",
        "Root hash of the shard state after the block; NULL in rows of the public data set",
        nullable=True,
    ),
    Column("rand_seed", "hash", "BlockExtra.rand_seed"),
    Column("created_by", "hash", "BlockExtra.created_by, the collator's public key"),
    Column("tx_count", "int64", "Transactions in the block"),
    Column(
        "boc_bytes",
        "int64",
        "Size of the block's bag of cells in bytes; NULL in rows of the public data set",
        nullable=True,
    ),
)

SHARD_BLOCKS = make_table(
    "shard_blocks",
    "Shard tops as of each masterchain block, unchanged ones and the masterchain included.",
    Column("mc_seqno", "int64", "Masterchain block whose ShardHashes name this top"),
    *BLOCK_KEY,
    Column("root_hash", "hash", "Root hash of the top block"),
    Column("file_hash", "hash", "File hash of the top block"),
    Column("start_lt", "int64", "First logical time of the top block"),
    Column("end_lt", "int64", "End logical time of the top block"),
    Column("gen_utime", "int64", "Unix seconds of the top block"),
    key=("mc_seqno", "workchain", "shard"),
)


BLOCK_PROOFS = _block_table(
    "block_proofs",
    "One row per block with a proof in the source: Merkle proof of the header (BlockProof) "
    "and, in the masterchain, validator signatures.",
    Column(
        "proof",
        "bytes",
        "BlockProof as bag of cells: Merkle proof of the header; in the masterchain also "
        "signatures",
    ),
    Column(
        "mc_extra",
        "bytes",
        "Masterchain: McBlockExtra as bag of cells, with the shard tops",
        nullable=True,
    ),
)


QUEUE_SIZES = _block_table(
    "queue_sizes",
    "One row per block: size of its shard's outbound message queue after the block "
    "(OutMsgQueueInfo of the resulting state).",
    Column(
        "out_queue_size",
        "int64",
        "Messages in the queue, without the dispatch queue; NULL: the state has no counter "
        "(before 2024) and the block does not contain the complete queue",
        nullable=True,
    ),
)


CONFIG_PARAMS = make_table(
    "config_params",
    "All configuration parameters at each key block and at the zero state (mc_seqno 0). The "
    "baseline adds those of the last key block before the lake, with the time of its state.",
    Column("mc_seqno", "int64", "Key block; parameters are valid until the next one"),
    Column("utime", "int64", "Unix seconds of the key block"),
    Column("param", "int32", "Parameter number, signed"),
    Column("hash", "hash", "Hash of the parameter's cell"),
    Column("boc", "bytes", "The parameter's cell as bag of cells"),
    key=("mc_seqno", "param"),
)

LIBRARIES = make_table(
    "libraries",
    "Changes of the public library collection of the masterchain (LibDescr).",
    Column("mc_seqno", "int64", "Masterchain block of the change"),
    Column("hash", "hash", "Hash of the library's root cell"),
    Column("present", "bool", "True: published or changed; false: removed"),
    Column("publishers", "hashes", "Masterchain accounts that publish it"),
    key=("mc_seqno", "hash"),
)


TRANSACTION_TRACES = make_table(
    "transaction_traces",
    "One row per transaction: its trace and its edge to the parent.",
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
    key=("workchain", "account", "lt"),
    sort=("lt", "workchain", "account"),
)

TRACES = make_table(
    "traces",
    "One row per trace. Complete traces never change; the others are in a separate file that "
    "every commit replaces.",
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
    Column("pending_messages", "int64", "Messages not yet consumed by a transaction in the lake"),
    key=("trace_id",),
    sort=("end_lt", "trace_id"),
)

OPEN_EDGES = make_table(
    "open_edges",
    "Internal messages with one end in the lake: sent but not consumed yet (out), or "
    "consumed but sent by no transaction in the lake (in). One file, replaced by every commit.",
    one_of("direction", "out", "in", doc="End in the lake"),
    Column("msg_hash", "hash", "Hash of the message"),
    Column("created_lt", "int64", "Logical time of creation"),
    Column("tx_hash", "hash", "Transaction at that end"),
    Column("trace_id", "hash", "Trace of that transaction"),
    Column("mc_seqno", "int64", "Masterchain block that commits that transaction"),
    key=("msg_hash", "created_lt", "direction"),
    sort=("created_lt", "msg_hash", "direction"),
)


FETCHED_ACCOUNTS = make_table(
    "fetched_accounts",
    "One row per account that a server fetched with `tonlake serve --liteserver` because no "
    "block of the lake touches it: its state, proven by the block it is as of. It stays the "
    "same until a row of account_states follows. At most [liteserver] kept_accounts rows.",
    Column("workchain", "int32", "Workchain of the account"),
    Column("account", "hash", "Account id, 32 bytes"),
    Column("mc_seqno", "int64", "Masterchain block that the state is proven as of"),
    Column("hash", "hash", "Hash of the Account cell"),
    Column("last_trans_lt", "int64", "Logical time of the account's last transaction"),
    Column("last_trans_hash", "hash", "Its hash; zeroes in a zero state"),
    Column("boc", "bytes", "The Account cell as bag of cells"),
    key=("workchain", "account"),
    sort=("workchain", "account", "mc_seqno"),
)


OFFCHAIN_METADATA = make_table(
    "offchain_metadata",
    "One row per URI of off-chain token content (TEP-64) fetched by `tonlake fetch-metadata` "
    "or by a server with [metadata] enabled. Not part of the chain: content as of fetched_at.",
    Column("uri", "text", "URI as stored in the contract"),
    Column("mc_seqno", "int64", "First masterchain block with a contract that names it"),
    Column(
        "state",
        "text",
        "fetched; invalid: the response is not a JSON object of an allowed size and type; "
        "failed: no response; refused: the URI is not allowed",
    ),
    Column("fetched_at", "int64", "Unix seconds of the last attempt"),
    Column("attempts", "int32", "Failed attempts since the last success"),
    *optional(
        Column("retry_at", "int64", "Unix seconds of the next attempt; NULL: none"),
        Column("url", "text", "Final URL, after gateway and redirects"),
        Column("error", "text", "Error of the last attempt; NULL: none"),
        Column("content", "json", "The JSON object; kept if a later attempt fails"),
    ),
    key=("uri", "mc_seqno"),
)


SCHEMA_VERSION = 3
"""Raised when columns change, so that views can fill them in for older files, or leave them out."""

BASE_TABLES: tuple[Table, ...] = (
    BLOCKS,
    SHARD_BLOCKS,
    TRANSACTIONS,
    MESSAGES,
    ACCOUNT_STATES,
    STATE_CELLS,
    CONFIG_PARAMS,
    LIBRARIES,
)

DECODED_TABLES = (*BASE_TABLES, QUEUE_SIZES)
"""Tables decoded from blocks; a lake may lack the last."""

DERIVED_TABLES: tuple[Table, ...] = (
    *(TRANSACTION_TRACES, TRACES, OPEN_EDGES),
    *CONTRACT_TABLES,
    *ACTION_TABLES,
    MESSAGE_BODIES,
)
"""Tables derived from the base tables."""

_SIDE_TABLES = (BLOCK_PROOFS, QUEUE_SIZES, OFFCHAIN_METADATA, FETCHED_ACCOUNTS)
"""Tables that nothing is derived from; optional in a lake."""

TABLES: dict[str, Table] = {
    table.name: table for table in (*BASE_TABLES, *_SIDE_TABLES, *DERIVED_TABLES)
}

__all__ = [
    "ACCOUNT_STATES",
    "ACTION_TABLES",
    "ARROW_TYPES",
    "CONTRACT_TABLES",
    "MESSAGES",
    "MESSAGE_BODIES",
    "STATE_CELLS",
    "TRANSACTIONS",
    "Column",
    "Table",
]

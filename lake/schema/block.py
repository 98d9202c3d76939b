"""Tables about blocks and the masterchain: headers, shard tops, proofs, queues, configuration."""

from tonlake.lake.schema.column import Column, Table, optional

BLOCK_KEY = (
    Column("workchain", "int32", "Workchain of the block; -1 is the masterchain"),
    Column("shard", "int64", "Shard id as signed 64-bit: prefix bits, a one, zeroes"),
    Column("seqno", "int64", "Sequence number inside the shard"),
)

BLOCKS = Table(
    name="blocks",
    doc="One row per block: header (BlockInfo), identity and position in the chain.",
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits this block (or itself)"),
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
    ),
)

SHARD_BLOCKS = Table(
    name="shard_blocks",
    doc="Shard tops as of each masterchain block, unchanged ones and the masterchain included.",
    key=("mc_seqno", "workchain", "shard"),
    sort=("mc_seqno", "workchain", "shard"),
    columns=(
        Column("mc_seqno", "int64", "Masterchain block whose ShardHashes name this top"),
        *BLOCK_KEY,
        Column("root_hash", "hash", "Root hash of the top block"),
        Column("file_hash", "hash", "File hash of the top block"),
        Column("start_lt", "int64", "First logical time of the top block"),
        Column("end_lt", "int64", "End logical time of the top block"),
        Column("gen_utime", "int64", "Unix seconds of the top block"),
    ),
)


BLOCK_PROOFS = Table(
    name="block_proofs",
    doc=(
        "One row per block with a proof in the source: Merkle proof of the header (BlockProof) "
        "and, in the masterchain, validator signatures."
    ),
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits the block (or itself)"),
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
    ),
)


QUEUE_SIZES = Table(
    name="queue_sizes",
    doc=(
        "One row per block: size of its shard's outbound message queue after the block "
        "(OutMsgQueueInfo of the resulting state)."
    ),
    key=("workchain", "shard", "seqno"),
    sort=("mc_seqno", "workchain", "shard", "seqno"),
    columns=(
        *BLOCK_KEY,
        Column("mc_seqno", "int64", "Masterchain block that commits the block (or itself)"),
        Column(
            "out_queue_size",
            "int64",
            "Messages in the queue, without the dispatch queue; NULL: the state has no counter "
            "(before 2024) and the block does not contain the complete queue",
            nullable=True,
        ),
    ),
)


CONFIG_PARAMS = Table(
    name="config_params",
    doc=(
        "All configuration parameters at each key block and at the zero state (mc_seqno 0). The "
        "baseline adds those of the last key block before the lake, with the time of its state."
    ),
    key=("mc_seqno", "param"),
    sort=("mc_seqno", "param"),
    columns=(
        Column("mc_seqno", "int64", "Key block; parameters are valid until the next one"),
        Column("utime", "int64", "Unix seconds of the key block"),
        Column("param", "int32", "Parameter number, signed"),
        Column("hash", "hash", "Hash of the parameter's cell"),
        Column("boc", "bytes", "The parameter's cell as bag of cells"),
    ),
)

LIBRARIES = Table(
    name="libraries",
    doc="Changes of the public library collection of the masterchain (LibDescr).",
    key=("mc_seqno", "hash"),
    sort=("mc_seqno", "hash"),
    columns=(
        Column("mc_seqno", "int64", "Masterchain block of the change"),
        Column("hash", "hash", "Hash of the library's root cell"),
        Column("present", "bool", "True: published or changed; false: removed"),
        Column("publishers", "hashes", "Masterchain accounts that publish it"),
    ),
)

"""Tables about accounts: every state after every block, and the cells that states are made of."""

from tonlake.lake.schema.column import Column, Table, optional

ACCOUNT_STATES = Table(
    name="account_states",
    doc=(
        "One row per account and block that touched it: the state after the block. "
        "Rows of a zero state have mc_seqno 0, block_seqno 0 and last_trans_lt 0."
    ),
    key=("workchain", "account", "mc_seqno", "block_seqno"),
    sort=("workchain", "account", "mc_seqno", "block_seqno"),
    columns=(
        Column("workchain", "int32", "Workchain of the account"),
        Column("account", "hash", "Account id, 32 bytes"),
        Column("mc_seqno", "int64", "Masterchain block that commits the block"),
        Column("shard", "int64", "Shard of the block, signed 64-bit"),
        Column("block_seqno", "int64", "Seqno of the block inside its shard"),
        Column("utime", "int64", "Unix seconds of the block"),
        Column("hash", "hash", "Hash of the Account cell"),
        Column("account_status", "text", "uninit, frozen, active, nonexist"),
        Column("balance", "int64", "Nanoton; 0 if nonexist"),
        Column("extra_currencies", "json", "Extra currencies, id to amount", nullable=True),
        Column("last_trans_lt", "int64", "Logical time of the account's last transaction"),
        Column("last_trans_hash", "hash", "Its hash; zeroes in a zero state"),
        *optional(
            Column("frozen_hash", "hash", "frozen: hash of the state that was frozen"),
            Column("code_hash", "hash", "active: hash of the code cell (of the library cell)"),
            Column("data_hash", "hash", "active: hash of the data cell"),
            Column("library_hash", "hash", "active: root of the account's library dictionary"),
            Column("fixed_prefix_length", "int8", "StateInit.fixed_prefix_length"),
            Column("special_tick", "bool", "StateInit.special.tick"),
            Column("special_tock", "bool", "StateInit.special.tock"),
            Column("storage_cells", "int64", "StorageUsed.cells"),
            Column("storage_bits", "int64", "StorageUsed.bits"),
            Column("storage_last_paid", "int64", "Unix seconds of the last storage payment"),
            Column("storage_due_payment", "int64", "Nanoton due for storage"),
            Column("storage_last_trans_lt", "int64", "AccountStorage.last_trans_lt"),
            Column(
                "extra_currencies_hash",
                "hash",
                "Root of the extra-currency dictionary; set with extra_currencies NULL when the "
                "dictionary lies in a block before the lake's first",
            ),
        ),
    ),
)

STATE_CELLS = Table(
    name="state_cells",
    doc=(
        "Cells of touched accounts and of public libraries, by hash. Unique in each file; the "
        "view is unique overall."
    ),
    key=("hash",),
    sort=("hash",),
    columns=(
        Column("hash", "hash", "Representation hash the cell has in the state"),
        Column("mc_seqno", "int64", "Masterchain block whose commit added it"),
        Column("cell", "bytes", "Descriptors d1, d2 and data, as in a bag of cells"),
        Column("refs", "hashes", "Hashes of the child cells, in order"),
    ),
)

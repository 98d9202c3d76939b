"""Table of accounts that the blocks of a lake do not show, fetched from lite servers."""

from tonlake.lake.schema.column import Column, Table

FETCHED_ACCOUNTS = Table(
    name="fetched_accounts",
    doc=(
        "One row per account that a server fetched with `tonlake serve --liteserver` because no "
        "block of the lake touches it: its state, proven by the block it is as of. It stays the "
        "same until a row of account_states follows. At most [liteserver] kept_accounts rows."
    ),
    key=("workchain", "account"),
    sort=("workchain", "account", "mc_seqno"),
    columns=(
        Column("workchain", "int32", "Workchain of the account"),
        Column("account", "hash", "Account id, 32 bytes"),
        Column("mc_seqno", "int64", "Masterchain block that the state is proven as of"),
        Column("hash", "hash", "Hash of the Account cell"),
        Column("last_trans_lt", "int64", "Logical time of the account's last transaction"),
        Column("last_trans_hash", "hash", "Its hash; zeroes in a zero state"),
        Column("boc", "bytes", "The Account cell as bag of cells"),
    ),
)

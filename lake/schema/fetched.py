"""Tables of fetched data: accounts from lite servers, token metadata from its URIs."""

from tonlake.lake.schema.column import Column, Table, optional

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


OFFCHAIN_METADATA = Table(
    name="offchain_metadata",
    doc=(
        "One row per URI of off-chain token content (TEP-64) fetched by `tonlake fetch-metadata` "
        "or by a server with [metadata] enabled. Not part of the chain: content as of fetched_at."
    ),
    key=("uri", "mc_seqno"),
    sort=("uri", "mc_seqno"),
    columns=(
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
    ),
)

"""Table of fetched off-chain token metadata."""

from tonlake.lake.schema.column import Column, Table, optional

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
            "fetched; invalid: the response is no JSON object of allowed size and type; failed: no "
            "response; refused: the URI is not allowed",
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

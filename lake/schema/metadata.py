"""Table of token content that lies outside of the chain, as far as somebody had it fetched."""

from lake.schema.column import Column, Table, optional

OFFCHAIN_METADATA = Table(
    name="offchain_metadata",
    doc=(
        "One row per address of token content (`uri`, TEP-64) that was asked for, by "
        "`tonlake fetch-metadata` or beside a server that has fetch_metadata on. It is no part of "
        "the chain: it says what stood there when it was fetched."
    ),
    key=("uri", "mc_seqno"),
    sort=("uri", "mc_seqno"),
    columns=(
        Column("uri", "text", "The address, as the contract has it"),
        Column("mc_seqno", "int64", "First masterchain block whose contracts name it"),
        Column(
            "state",
            "text",
            "fetched; invalid: an answer, but no JSON object of allowed size and type; failed: no "
            "answer; refused: an address that is not asked",
        ),
        Column("fetched_at", "int64", "Unix seconds of the last try"),
        Column("attempts", "int32", "Tries without success since the last one that had it"),
        *optional(
            Column("retry_at", "int64", "Unix seconds when it is tried again; NULL: it is not"),
            Column("url", "text", "Where it was found, behind gateway and redirects"),
            Column("error", "text", "What went wrong in the last try; NULL: nothing"),
            Column("content", "json", "The JSON object; kept where a later try fails"),
        ),
    ),
)

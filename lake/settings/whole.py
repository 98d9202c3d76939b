"""All settings as one struct: the parts that have modules of their own, and all others."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lake.settings.metadata import MetadataSettings


class Settings(MetadataSettings, frozen=True, forbid_unknown_fields=True):
    """All settings with their defaults; each field's description is its documentation."""

    mc_blocks_per_commit: Annotated[
        int, Meta(description="Most masterchain blocks in one commit", ge=1)
    ] = 1000
    transactions_per_commit: Annotated[
        int,
        Meta(description="A commit is cut once it holds this many transactions", ge=1),
    ] = 200_000
    commit_bytes: Annotated[
        int, Meta(description="A commit is cut once its rows take this much memory", ge=1)
    ] = 256 << 20
    mc_blocks_per_chunk: Annotated[
        int, Meta(description="Most masterchain blocks decoded as one piece of work", ge=1)
    ] = 64
    chunk_bytes: Annotated[
        int,
        Meta(description="A piece of decoding work is cut once it holds this many bytes", ge=1),
    ] = 4 << 20
    row_group_rows: Annotated[
        int, Meta(description="Most rows in a row group of a Parquet file", ge=1)
    ] = 65_536
    zstd_level: Annotated[
        int, Meta(description="Compression level of Parquet files", ge=1, le=22)
    ] = 3
    checkpoint_commits: Annotated[
        int,
        Meta(description="The list of live files is written out after this many commits", ge=1),
    ] = 100
    lookup_memory_rows: Annotated[
        int,
        Meta(description="Most transactions without a look-up run that are looked up in memory"),
    ] = 50_000
    lookup_part_rows: Annotated[
        int, Meta(description="Transactions held in memory while look-ups are built", ge=1)
    ] = 50_000
    build_lookups: Annotated[
        bool, Meta(description="Build look-ups after ingest, and while following")
    ] = True
    compact_rows: Annotated[
        int, Meta(description="Most rows of one table that compaction puts into one file", ge=1)
    ] = 1_000_000
    compact_commits: Annotated[
        int,
        Meta(
            description="While following, this many small commits are merged at a time; 0: none",
            ge=0,
        ),
    ] = 16
    compact_memory_rows: Annotated[
        int, Meta(description="Rows of one table held in memory while files are merged", ge=1)
    ] = 200_000
    orphan_grace_s: Annotated[
        int,
        Meta(description="Seconds a file that no commit names is left alone", ge=0),
    ] = 3600
    check_digests: Annotated[
        bool, Meta(description="Check every file's digest when a lake is opened")
    ] = True
    open_indexes: Annotated[
        int, Meta(description="Package indexes of a node kept open at once", ge=1)
    ] = 4
    block_proofs: Annotated[
        bool, Meta(description="Keep the proofs and signatures that a node has of its blocks")
    ] = True
    detect_contracts: Annotated[
        bool,
        Meta(
            description="Find out at ingest which accounts are wallets, jettons, NFTs and the like"
        ),
    ] = True
    classify_actions: Annotated[
        bool,
        Meta(description="Say at ingest what traces did; else `tonlake rebuild actions` does"),
    ] = True
    contract_gas_limit: Annotated[
        int, Meta(description="Gas a get-method may use that is run at ingest", ge=1)
    ] = 1_000_000
    contract_wall_ms: Annotated[
        int,
        Meta(description="Milliseconds a get-method may run at ingest; gas ends it before", ge=1),
    ] = 10_000
    duckdb_memory_mib: Annotated[int, Meta(description="Memory limit of DuckDB in MiB", ge=64)] = (
        1024
    )
    duckdb_threads: Annotated[int, Meta(description="Threads of DuckDB", ge=1)] = 2
    query_timeout_ms: Annotated[
        int, Meta(description="Milliseconds a query may take; 0 sets no limit", ge=0)
    ] = 3000
    table_rows: Annotated[
        int, Meta(description="Most rows that tonlake sql prints as a table", ge=1)
    ] = 1000
    http_host: Annotated[str, Meta(description="Address the API listens on")] = "127.0.0.1"
    http_port: Annotated[
        int, Meta(description="Port the API listens on; 0 takes a free one", ge=0, le=65535)
    ] = 8080
    v2_default_limit: Annotated[
        int, Meta(description="API v2: rows of a list when the request names none", ge=1)
    ] = 10
    v2_max_limit: Annotated[int, Meta(description="API v2: most rows of a list", ge=1)] = 1000
    v2_default_count: Annotated[
        int,
        Meta(description="API v2: transactions of a block when the request names none", ge=1),
    ] = 40
    v2_max_count: Annotated[int, Meta(description="API v2: most transactions of a block", ge=1)] = (
        10_000
    )
    v3_default_limit: Annotated[
        int, Meta(description="API v3: rows of a list when the request names none", ge=1)
    ] = 10
    v3_max_limit: Annotated[int, Meta(description="API v3: most rows of a list", ge=1)] = 1000
    v3_decode_limit: Annotated[
        int, Meta(description="API v3: most opcodes, and most bodies, of one request", ge=1)
    ] = 1000
    v3_trace_transactions: Annotated[
        int,
        Meta(description="API v3: a trace with more transactions is shown without them", ge=1),
    ] = 4000
    v3_page_transactions: Annotated[
        int,
        Meta(description="API v3: most transactions of the traces in one answer", ge=1),
    ] = 50_000
    request_body_bytes: Annotated[int, Meta(description="Largest request body", ge=1)] = 1 << 20
    response_bytes: Annotated[int, Meta(description="Largest response body", ge=1)] = 64 << 20
    cells_in_memory: Annotated[
        int,
        Meta(description="Most cells of code and data kept in memory; more are found by SQL", ge=0),
    ] = 500_000
    answer_cache_mib: Annotated[
        int, Meta(description="Memory for answers sent again until a commit, in MiB", ge=0)
    ] = 64
    strict_parameters: Annotated[
        bool,
        Meta(description="Refuse unknown and repeated query parameters instead of warning"),
    ] = False
    opcode_format: Annotated[
        Literal["hex", "integer"], Meta(description="API v3: how opcodes are written")
    ] = "hex"
    testnet: Annotated[
        bool | None,
        Meta(description="Test-only flag in friendly addresses; unset: by the lake's network"),
    ] = None
    tvm_workers: Annotated[
        int, Meta(description="Processes that run get-methods, started when needed", ge=1)
    ] = 2
    tvm_queue: Annotated[int, Meta(description="Get-methods that may wait for a process", ge=0)] = (
        64
    )
    tvm_wait_ms: Annotated[
        int, Meta(description="Milliseconds a get-method may wait for a process", ge=1)
    ] = 5000
    tvm_wall_ms: Annotated[int, Meta(description="Milliseconds a get-method may run", ge=1)] = 1000
    tvm_gas_limit: Annotated[int, Meta(description="Gas a get-method may use", ge=1)] = 4_000_000
    tvm_memory_mib: Annotated[
        int, Meta(description="Address space of a process that runs get-methods, in MiB", ge=256)
    ] = 1024
    tvm_stack_entries: Annotated[
        int, Meta(description="Most values, nested ones included, in a get-method's stack", ge=1)
    ] = 8000
    tvm_stack_depth: Annotated[
        int, Meta(description="A get-method's stack is nested less deep than this", ge=1, le=200)
    ] = 100
    tvm_result_bytes: Annotated[
        int, Meta(description="Most bytes of cells in a get-method's resulting stack", ge=1)
    ] = 16 << 20
    tvm_libraries: Annotated[
        int, Meta(description="Most public libraries that are read for one get-method", ge=0)
    ] = 256
    emulator_library: Annotated[
        str,
        Meta(description="Path of a libemulator that emulates messages; unset: that of tonpy"),
    ] = ""
    emulated_transactions: Annotated[
        int, Meta(description="An emulated trace is cut after so many transactions", ge=1)
    ] = 256
    upstream_url: Annotated[
        str,
        Meta(
            description="Where messages are sent: a service of API v2, as https://host/api/v2",
            pattern="^(https?://.+)?$",
        ),
    ] = ""
    upstream_key: Annotated[str, Meta(description="API key that the upstream is asked with")] = ""
    upstream_timeout_ms: Annotated[
        int, Meta(description="Milliseconds that the upstream may take to answer", ge=1)
    ] = 10_000


NAMES: tuple[str, ...] = Settings.__struct_fields__


def describe_settings() -> dict[str, str]:
    """Return the documentation of every setting by name."""
    properties = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    return {name: properties[name]["description"] for name in NAMES}

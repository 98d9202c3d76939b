"""All settings as one struct."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lake.settings.metadata import MetadataSettings


class Settings(MetadataSettings, frozen=True, forbid_unknown_fields=True):
    """All settings with defaults; the field descriptions are their documentation."""

    mc_blocks_per_commit: Annotated[
        int, Meta(description="Most masterchain blocks in one commit", ge=1)
    ] = 1000
    transactions_per_commit: Annotated[
        int,
        Meta(description="A commit ends once it holds this many transactions", ge=1),
    ] = 200_000
    commit_bytes: Annotated[
        int, Meta(description="A commit ends once its rows take this many bytes of memory", ge=1)
    ] = 256 << 20
    mc_blocks_per_chunk: Annotated[
        int, Meta(description="Most masterchain blocks in one decoding chunk", ge=1)
    ] = 64
    chunk_bytes: Annotated[
        int,
        Meta(description="A decoding chunk ends once it holds this many bytes of blocks", ge=1),
    ] = 4 << 20
    row_group_rows: Annotated[int, Meta(description="Rows per Parquet row group", ge=1)] = 65_536
    zstd_level: Annotated[
        int, Meta(description="zstd compression level of Parquet files", ge=1, le=22)
    ] = 3
    checkpoint_commits: Annotated[
        int,
        Meta(description="Commits between checkpoints (lists of live files) in the log", ge=1),
    ] = 100
    lookup_memory_rows: Annotated[
        int,
        Meta(description="Most transactions without an index segment that are indexed in memory"),
    ] = 50_000
    lookup_part_rows: Annotated[
        int, Meta(description="Transactions held in memory while an index segment is built", ge=1)
    ] = 50_000
    build_lookups: Annotated[
        bool, Meta(description="Build the index after ingest, and while following")
    ] = True
    compact_rows: Annotated[
        int, Meta(description="Most rows in a file written by compaction", ge=1)
    ] = 1_000_000
    compact_commits: Annotated[
        int,
        Meta(
            description="While following, number of small commits merged at a time; 0: none",
            ge=0,
        ),
    ] = 16
    compact_memory_rows: Annotated[
        int, Meta(description="Rows of one table held in memory during a merge", ge=1)
    ] = 200_000
    orphan_grace_s: Annotated[
        int,
        Meta(description="Seconds before an unreferenced file may be deleted", ge=0),
    ] = 3600
    check_digests: Annotated[
        bool, Meta(description="Check the digest of each file once, when a lake is opened")
    ] = True
    open_indexes: Annotated[int, Meta(description="Package indexes of a node kept open", ge=1)] = 4
    block_proofs: Annotated[
        bool, Meta(description="Store the node's block proofs and signatures")
    ] = True
    detect_contracts: Annotated[
        bool,
        Meta(description="Detect wallets, jettons, NFTs and other contracts during ingest"),
    ] = True
    classify_actions: Annotated[
        bool,
        Meta(description="Classify traces during ingest; otherwise use `tonlake rebuild actions`"),
    ] = True
    contract_gas_limit: Annotated[
        int, Meta(description="Gas limit of a get-method during ingest", ge=1)
    ] = 1_000_000
    contract_wall_ms: Annotated[
        int,
        Meta(description="Milliseconds a get-method may run during ingest, beside gas", ge=1),
    ] = 10_000
    duckdb_memory_mib: Annotated[int, Meta(description="Memory limit of DuckDB in MiB", ge=64)] = (
        1024
    )
    duckdb_threads: Annotated[int, Meta(description="Threads of DuckDB", ge=1)] = 2
    query_timeout_ms: Annotated[
        int, Meta(description="Query timeout in milliseconds; 0: none", ge=0)
    ] = 3000
    table_rows: Annotated[
        int, Meta(description="Most rows that tonlake sql prints as a table", ge=1)
    ] = 1000
    http_host: Annotated[str, Meta(description="Address the API listens on")] = "127.0.0.1"
    http_port: Annotated[
        int, Meta(description="Port the API listens on; 0: any free port", ge=0, le=65535)
    ] = 8080
    v2_default_limit: Annotated[int, Meta(description="API v2: default list length", ge=1)] = 10
    v2_max_limit: Annotated[int, Meta(description="API v2: maximum list length", ge=1)] = 1000
    v2_default_count: Annotated[
        int,
        Meta(description="API v2: default number of transactions of a block", ge=1),
    ] = 40
    v2_max_count: Annotated[int, Meta(description="API v2: most transactions of a block", ge=1)] = (
        10_000
    )
    v3_default_limit: Annotated[int, Meta(description="API v3: default list length", ge=1)] = 10
    v3_max_limit: Annotated[int, Meta(description="API v3: maximum list length", ge=1)] = 1000
    v3_decode_limit: Annotated[
        int, Meta(description="API v3: most opcodes, and most bodies, in a /decode request", ge=1)
    ] = 1000
    v3_trace_transactions: Annotated[
        int,
        Meta(description="API v3: traces with more transactions are returned without them", ge=1),
    ] = 4000
    v3_page_transactions: Annotated[
        int,
        Meta(description="API v3: most transactions of the traces in a response", ge=1),
    ] = 50_000
    request_body_bytes: Annotated[int, Meta(description="Largest request body in bytes", ge=1)] = (
        1 << 20
    )
    response_bytes: Annotated[int, Meta(description="Largest response body in bytes", ge=1)] = (
        64 << 20
    )
    cells_in_memory: Annotated[
        int,
        Meta(description="Most code and data cells cached in memory; others are read by SQL", ge=0),
    ] = 500_000
    answer_cache_mib: Annotated[
        int,
        Meta(description="Response cache in MiB; entries are valid until the next commit", ge=0),
    ] = 64
    strict_parameters: Annotated[
        bool,
        Meta(description="Reject unknown and repeated query parameters instead of warning"),
    ] = False
    opcode_format: Annotated[
        Literal["hex", "integer"], Meta(description="API v3: opcode format")
    ] = "hex"
    testnet: Annotated[
        bool | None,
        Meta(description="Test-only flag of friendly addresses; unset: by the lake's network"),
    ] = None
    tvm_workers: Annotated[
        int, Meta(description="Processes that run get-methods, started on demand", ge=1)
    ] = 2
    tvm_queue: Annotated[int, Meta(description="Get-methods that may wait for a process", ge=0)] = (
        64
    )
    tvm_wait_ms: Annotated[
        int, Meta(description="Milliseconds a get-method may wait for a process", ge=1)
    ] = 5000
    tvm_wall_ms: Annotated[int, Meta(description="Milliseconds a get-method may run", ge=1)] = 1000
    tvm_gas_limit: Annotated[int, Meta(description="Gas limit of a get-method", ge=1)] = 4_000_000
    tvm_memory_mib: Annotated[
        int, Meta(description="Address space of a get-method process in MiB", ge=256)
    ] = 1024
    tvm_stack_entries: Annotated[
        int, Meta(description="Most values in a get-method's stack, nested ones included", ge=1)
    ] = 8000
    tvm_stack_depth: Annotated[
        int, Meta(description="Nesting limit of a get-method's stack", ge=1, le=200)
    ] = 100
    tvm_result_bytes: Annotated[
        int, Meta(description="Most bytes of cells in a get-method's result", ge=1)
    ] = 16 << 20
    tvm_libraries: Annotated[
        int, Meta(description="Most public libraries loaded for one get-method", ge=0)
    ] = 256
    emulator_library: Annotated[
        str,
        Meta(description="Path of a libemulator; unset: the one in tonpy"),
    ] = ""
    emulated_transactions: Annotated[
        int, Meta(description="Most transactions of an emulated trace", ge=1)
    ] = 256
    upstream_url: Annotated[
        str,
        Meta(
            description="API v2 that messages are sent to, such as https://host/api/v2",
            pattern="^(https?://.+)?$",
        ),
    ] = ""
    upstream_key: Annotated[str, Meta(description="API key for the upstream")] = ""
    upstream_timeout_ms: Annotated[
        int, Meta(description="Upstream timeout in milliseconds", ge=1)
    ] = 10_000


NAMES: tuple[str, ...] = Settings.__struct_fields__


def describe_settings() -> dict[str, str]:
    """Return the documentation of every setting by name."""
    properties = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    return {name: properties[name]["description"] for name in NAMES}

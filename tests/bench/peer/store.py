"""Loads the rows of a lake into PostgreSQL with the peer's tables, keys and indexes."""

import time
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv

from tests.bench.clock import cpu_clock_of
from tonlake.lake.duck.connection import read_macros
from tonlake.lake.duck.connection import read_sql as read_view
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import TABLES as SCHEMAS

SQL = Path(__file__).parent
TABLES = (
    "blocks",
    "transactions",
    "messages",
    "message_contents",
    "account_states",
    "latest_account_states",
    "traces",
)
"""What the lake of the benchmark holds rows for, and what the peer makes of them."""

_BATCH_ROWS = 50_000
_MEMORY = "4GB"


def read_sql(name: str) -> str:
    """Return the text of a file beside this module."""
    return (SQL / f"{name}.sql").read_text(encoding="utf-8")


def load_peer(address: str, lake_dir: Path, scratch: Path) -> dict[str, float]:
    """Copy every row of the newest snapshot; return CPU seconds by step and size in bytes."""
    with open_rows(lake_dir, scratch) as rows, psycopg.connect(address, autocommit=True) as peer:
        clock = cpu_clock_of(peer.info.backend_pid)
        began_s = time.clock_gettime(clock)
        peer.execute(read_sql("tables"))
        for name in TABLES:
            _copy(rows, peer, name)
        copied_s = time.clock_gettime(clock)
        # Statement by statement: VACUUM cannot run in a transaction block.
        for statement in read_sql("indexes").split(";"):
            if statement.strip():
                peer.execute(statement.encode())
        indexed_s = time.clock_gettime(clock)
        sizes = peer.execute(
            "select sum(pg_total_relation_size(oid)) from pg_class "
            "where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
        size = sizes.fetchone()
    return {
        "copy_s": copied_s - began_s,
        "indexes_s": indexed_s - copied_s,
        "bytes": float(size[0]) if size else 0.0,
    }


def open_rows(lake_dir: Path, scratch: Path) -> duckdb.DuckDBPyConnection:
    """Return a separate DuckDB database over the lake's files, which may spill to disk."""
    snapshot = open_snapshot(lake_dir, check_digests=False)
    rows = duckdb.connect(
        config={"memory_limit": _MEMORY, "threads": 2, "temp_directory": str(scratch / "spill")}
    )
    for name, table in SCHEMAS.items():
        files = snapshot.files.get(name)
        if files:
            paths = [str(lake_dir / file.path) for file in files]
            rows.read_parquet(paths).create_view(name)
        else:
            rows.from_arrow(table.arrow.empty_table()).create(name)
    rows.execute(read_macros())
    rows.execute(read_view("latest_account_states"))
    rows.execute(read_sql("macros"))
    rows.execute(read_sql("traced"))
    return rows


def _copy(rows: duckdb.DuckDBPyConnection, peer: psycopg.Connection, name: str) -> None:
    batches = rows.sql(read_sql(name)).to_arrow_reader(_BATCH_ROWS)
    columns = ", ".join(batches.schema.names)
    command = f"copy {name} ({columns}) from stdin (format csv)"
    options = pyarrow.csv.WriteOptions(include_header=False)
    with peer.cursor() as cursor, cursor.copy(command.encode()) as copy:
        for batch in batches:
            sink = pa.BufferOutputStream()
            pyarrow.csv.write_csv(batch, sink, options)
            copy.write(memoryview(sink.getvalue()))

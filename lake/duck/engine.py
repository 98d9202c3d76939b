"""An empty DuckDB with the settings of the lake, and the end of what it may reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

DEFAULTS = LakeSettings()

_KEYS_FILTERED = 500
"""Of more keys than this, bloom filters are not asked; 50 by default. An ingest looks up hundreds
of state cells at a time. To compare each row with a thousand keys takes up to 40 % more than a join
alone, where no filter leaves rows out."""


def begin_database(settings: LakeSettings, spill: Path | None = None) -> DuckDBPyConnection:
    """Return an empty in-memory database, which reaches every file until it is locked.

    ``spill`` is a folder for what exceeds the memory limit.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": settings.duckdb_threads,
        "memory_limit": f"{settings.duckdb_memory_mib}MiB",
        "temp_directory": "" if spill is None else str(spill),
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "python_enable_replacements": False,
        "dynamic_or_filter_threshold": _KEYS_FILTERED,
    }
    connection = duckdb.connect(":memory:", config=config)
    # An option of the Parquet extension, so not known before the database is there.
    connection.execute("set parquet_metadata_cache = true")
    # By default what a query took stays until 128 MiB of it are free at once. Most buffers of
    # columns are below 2 MiB: giving back each would double the CPU time of a query.
    connection.execute("set allocator_flush_threshold = '64KiB'")
    connection.execute("set allocator_bulk_deallocation_flush_threshold = '2MiB'")
    return connection


def lock_database(connection: DuckDBPyConnection) -> None:
    """Keep a database to the files that it is allowed, for good."""
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")

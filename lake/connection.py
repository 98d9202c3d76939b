"""A DuckDB connection on one snapshot: a view per table, and the macros, read-only.

The views name their files explicitly, so that every query on the connection sees one commit.
"""

from __future__ import annotations

from functools import reduce
from importlib.resources import files
from typing import TYPE_CHECKING

import duckdb
from duckdb import ColumnExpression, ConstantExpression, DuckDBPyRelation
from duckdb.sqltypes import DATE

from lake.schema import TABLES
from lake.schema.contract import HISTORY_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from lake.log import DataFile
    from lake.schema import Table
    from lake.settings import Settings

PARTITION = "day"
"""Column that comes from the folder's name, last in every view: the UTC day of the commit."""

VIEW_NAMES = {"state_cells": "state_cell_copies"}
"""Tables whose rows a person does not ask directly, and the name of the view over their files."""

DERIVED_VIEWS = {
    "state_cells": ("state_cell_copies",),
    "latest_account_states": ("account_states",),
    "traced_transactions": ("transactions", "transaction_traces"),
    "traced_messages": ("messages", "transaction_traces"),
    "decoded_messages": ("messages", "message_bodies"),
    **{f"latest_{table.name}": (table.name,) for table in HISTORY_TABLES},
}
"""Views over views, and the views each is made of; their text is in ``sql/<name>.sql``, with
comments on the columns that the first of these does not have."""


def read_sql(name: str) -> str:
    """Return the text of ``lake/sql/<name>.sql``."""
    return (files("lake") / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def open_connection(
    lake_dir: Path, tables: Mapping[str, tuple[DataFile, ...]], settings: Settings
) -> DuckDBPyConnection:
    """Return an in-memory database with a view for each of ``tables``, and nothing else in reach.

    Its configuration is locked: only the files named in ``tables`` can be opened.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": settings.duckdb_threads,
        "memory_limit": f"{settings.duckdb_memory_mib}MiB",
        "temp_directory": "",
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    # An option of the Parquet extension, so not known before the database is there.
    connection.execute("set parquet_metadata_cache = true")
    root = lake_dir.absolute()
    for name, data_files in tables.items():
        relation = _read_table(connection, root, TABLES[name], data_files)
        relation.create_view(VIEW_NAMES.get(name, name))
    available = {VIEW_NAMES.get(name, name) for name in tables}
    connection.execute(read_sql("macros"))
    for name, bases in DERIVED_VIEWS.items():
        if available.issuperset(bases):
            connection.execute(read_sql(name))
    paths = [f"{root}/{file.path}" for group in tables.values() for file in group]
    connection.execute("set allowed_paths = $paths", {"paths": paths})
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    return connection


def _read_table(
    connection: DuckDBPyConnection, root: Path, table: Table, data_files: tuple[DataFile, ...]
) -> DuckDBPyRelation:
    """Return the rows of the files, with NULLs where a file is older than a column."""
    versions: dict[int, list[str]] = {}
    for file in data_files:
        versions.setdefault(file.schema_version, []).append(f"{root}/{file.path}")
    parts = [connection.values(ConstantExpression(None)).limit(0)] if not versions else []
    parts += [
        connection.read_parquet(versions[version], hive_partitioning=True)
        for version in sorted(versions, reverse=True)
    ]
    return reduce(DuckDBPyRelation.union, (_fit_columns(connection, part, table) for part in parts))


def _fit_columns(
    connection: DuckDBPyConnection, part: DuckDBPyRelation, table: Table
) -> DuckDBPyRelation:
    shape = connection.from_arrow(table.arrow.empty_table())
    types = dict(zip(shape.columns, shape.types, strict=True)) | {PARTITION: DATE}
    if part.columns == list(types):
        return part
    return part.select(
        *(
            ColumnExpression(name)
            if name in part.columns
            else ConstantExpression(None).cast(kind).alias(name)
            for name, kind in types.items()
        )
    )

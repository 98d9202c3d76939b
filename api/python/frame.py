"""Reads a table of a snapshot as a lazy Polars frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tonlake.api.python.result import need
from tonlake.lake.duck.connection import PARTITION
from tonlake.lake.duck.remote import describe_files

if TYPE_CHECKING:
    import polars as pl

    from tonlake.api.python.source import Opened
    from tonlake.lake.schema import Table


def scan_table(opened: Opened, table: Table) -> pl.LazyFrame:
    """Return the rows of the snapshot's files with ``day``; nothing is read yet.

    A filter on ``day`` skips the files of other days.

    Raises:
        ImportError: Polars is not installed.
        LakeCorrupt: a file of the table is damaged.
    """
    need("polars", "Lake.table()")
    import polars as pl  # noqa: PLC0415 - an extra

    snapshot, storage = opened.snapshot, opened.source.storage
    if table.name in snapshot.damaged:
        raise snapshot.damaged[table.name]
    files = snapshot.files[table.name]
    if storage is not None:
        return pl.scan_pyarrow_dataset(describe_files(storage, table, files))
    schema = pl.DataFrame(pa.table(table.arrow.empty_table())).schema
    day = {PARTITION: pl.Date()}
    if not files:
        return pl.LazyFrame(schema={**schema, **day})
    root = snapshot.lake_dir.absolute()
    return pl.scan_parquet(
        [root / file.path for file in files],
        glob=False,
        schema=schema,
        missing_columns="insert",
        hive_partitioning=True,
        hive_schema=day,
    )

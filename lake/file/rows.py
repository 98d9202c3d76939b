"""Rows of one data file, checked against its digest: for those who make new files from old."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow.compute as pc

    from tonlake.lake.log.state import DataFile

_FEW_ROWS = 1_000
_FEW_BYTES = 1 << 20
"""A file of no more bytes is read at once: asked for column by column it takes twice the time."""


def read_rows(
    lake_dir: Path,
    file: DataFile,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Return the rows of a file, with all of the schema's fields or only ``columns``.

    Columns that are newer than the file are NULL. Rows for which ``where`` does not hold are left
    out; row groups without any are not decoded.

    Raises:
        LakeCorrupt: the file is missing, or its bytes are not those that were committed.
    """
    try:
        data = (lake_dir / file.path).read_bytes()
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error) from error
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise LakeCorrupt(file.path, "its bytes do not give its digest")
    fields = _pick_fields(file.table, None if columns is None else tuple(columns))
    # Without the threads of a data set: those may still be starting when a short command
    # ends, which aborts the process.
    source = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)  # it is in memory already
    if where is None:
        # Names that the file lacks are passed over.
        rows = source.read(fields.names, use_threads=file.rows > _FEW_ROWS)
    else:
        held = set(source.schema_arrow.names)  # rebuilt on every access
        present = [name for name in fields.names if name in held]
        rows = pq.read_table(pa.BufferReader(data), columns=present, filters=where)
    return _fill_fields(rows, fields)


def stream_rows(
    lake_dir: Path, file: DataFile, rows_at_once: int, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of a file, some at a time, with all of the schema's fields or ``columns``.

    Columns that are newer than the file are NULL.

    Raises:
        LakeCorrupt: the file is missing, or its bytes are not those that were committed.
    """
    fields = _pick_fields(file.table, None if columns is None else tuple(columns))
    try:
        with (lake_dir / file.path).open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
                raise LakeCorrupt(file.path, "its bytes do not give its digest")
            stream.seek(0)
            if file.bytes <= _FEW_BYTES and file.rows <= rows_at_once:
                data = pa.BufferReader(stream.read())
                source = pq.ParquetFile(data, pre_buffer=False)
                yield _fill_fields(source.read(fields.names, use_threads=False), fields)
                return
            source = pq.ParquetFile(stream)
            many = file.rows > _FEW_ROWS
            for batch in source.iter_batches(rows_at_once, columns=fields.names, use_threads=many):
                yield _fill_fields(batch, fields)
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error) from error


@lru_cache(maxsize=256)
def _pick_fields(table: str, columns: tuple[str, ...] | None) -> pa.Schema:
    """Return fields of a table: to make them takes a tenth of what a file of few rows does."""
    fields = TABLES[table].arrow
    return fields if columns is None else pa.schema([fields.field(name) for name in columns])


def _fill_fields(rows: pa.Table | pa.RecordBatch, fields: pa.Schema) -> pa.Table:
    """Return the rows with these fields, NULL where the file has none of the name."""
    if isinstance(rows, pa.Table) and rows.schema.equals(fields, check_metadata=True):
        return rows  # most files have all of them, and to make a table of a row takes long
    present = set(rows.schema.names)
    columns = [
        rows[field.name] if field.name in present else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=fields)

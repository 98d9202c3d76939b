"""Reads the rows of a data file, verifying its digest, and converts columns to Python values."""

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.place import read_place
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import TABLES, Table

Row = dict[str, Any]
"""A row by column names."""

Load = Callable[[str], pa.Buffer]
"""Returns the bytes of a pack by its path."""

PARTITION = "day"
"""Column from the folder's name, last in every view: the UTC day of the commit."""

_FEW_ROWS = 1_000
_FEW_BYTES = 1 << 20
"""Files up to this size are read in one go; column by column takes twice the time."""


def read_rows(
    lake_dir: Path,
    file: DataFile,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
    load: Load | None = None,
) -> pa.Table:
    """Return the rows of a file that satisfy ``where``, with all fields of the schema or some.

    Columns added after the file was written are NULL; row groups without a match are not decoded. A
    file that is missing or differs from what was committed raises LakeCorrupt. ``load`` may cache.
    """
    fields = _pick_fields(file.table, None if columns is None else tuple(columns))
    if file.pack:
        rows = pa.Table.from_batches([_read_packed(file, load or partial(read_buffer, lake_dir))])
        return fill_fields(rows if where is None else rows.filter(where), fields)
    try:
        data = read_buffer(lake_dir, file.path)
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error, file.where) from error
    check_digest(data, file)
    source = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)  # it is in memory already
    if where is None:
        # Names that the file does not have are ignored.
        rows = source.read(fields.names, use_threads=file.rows > _FEW_ROWS)
    else:
        held = set(source.schema_arrow.names)  # rebuilt on every access
        present = [name for name in fields.names if name in held]
        rows = pq.read_table(pa.BufferReader(data), columns=present, filters=where)
    return fill_fields(rows, fields)


def stream_rows(lake_dir: Path, file: DataFile, rows_at_once: int) -> Iterator[pa.Table]:
    """Yield the rows of a file in batches, with all fields of the schema."""
    if file.pack:
        yield read_rows(lake_dir, file)
        return
    fields = TABLES[file.table].arrow
    try:
        with pa.OSFile(str(lake_dir / file.path)) as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != file.sha256:
                raise LakeCorrupt(file.path, f"its bytes{file.where} do not match its digest")
            stream.seek(0)
            if file.bytes <= _FEW_BYTES and file.rows <= rows_at_once:
                data = pa.BufferReader(stream.read_buffer())
                source = pq.ParquetFile(data, pre_buffer=False)
                yield fill_fields(source.read(fields.names, use_threads=False), fields)
                return
            source = pq.ParquetFile(stream)
            many = file.rows > _FEW_ROWS
            for batch in source.iter_batches(rows_at_once, columns=fields.names, use_threads=many):
                yield fill_fields(batch, fields)
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error, file.where) from error


KEPT_PACKS = 256


class PackedRows:
    """The rows of a lake that are in packs; those of a table stay as long as its files are read."""

    def __init__(self, load: Load) -> None:
        """Take a function that returns the bytes of a pack; it keeps them for all tables."""
        self._load = load
        self._rows: dict[str, dict[str, pa.RecordBatch]] = {}

    def read(self, table: str, files: Sequence[DataFile]) -> pa.Table:
        """Return the rows of files in packs, and their ``day``; LakeCorrupt: a pack is damaged."""
        known = self._rows.get(table, {})
        rows = {file.path: known.get(file.path) or _read_packed(file, self._load) for file in files}
        self._rows[table] = rows
        # DuckDB is slow with many chunks.
        joined = pa.Table.from_batches(rows.values()).combine_chunks()
        days = np.array([read_place(file.path).day for file in files], "M8[D]").astype(np.int32)
        # From a buffer: to convert Python values, Arrow would import pandas where it is installed.
        held = pa.py_buffer(np.repeat(days, [file.rows for file in files]))
        column = pa.Array.from_buffers(pa.date32(), joined.num_rows, [None, held])
        return joined.append_column(PARTITION, column)


def _read_packed(file: DataFile, load: Load) -> pa.RecordBatch:
    try:
        data = load(file.pack).slice(file.offset, file.bytes)
    except OSError as error:
        raise LakeCorrupt.unreadable(file.path, error, file.where) from error
    except IndexError as error:
        raise LakeCorrupt(file.path, f"{file.pack} ends before it") from error
    check_digest(data, file)
    return _decode_stream(data, TABLES[file.table])


def _decode_stream(data: pa.Buffer, table: Table) -> pa.RecordBatch:
    """Return the rows of a file in a pack; decoding its schema takes longer than few rows."""
    schema = serialize_schema(table)
    if data.slice(0, schema.size).equals(schema):
        return pa.ipc.read_record_batch(data.slice(schema.size), table.arrow)
    return fill_fields(pa.ipc.open_stream(data).read_next_batch(), table.arrow).to_batches()[0]


@lru_cache(128)
def serialize_schema(table: Table) -> pa.Buffer:
    """Return the beginning of a table's stream, which has one batch."""
    return table.arrow.serialize()


def load_from(lake_dir: Path) -> Load:
    """Return what loads packs of a lake's folder, and keeps some."""
    return lru_cache(KEPT_PACKS)(partial(read_buffer, lake_dir))


def read_buffer(lake_dir: Path, path: str) -> pa.Buffer:
    """Return the bytes of a file in memory of Arrow, not of Python.

    Threads of Arrow let go of it late, and one that needs the interpreter for that while the
    process ends aborts it.
    """
    with pa.OSFile(f"{lake_dir}/{path}") as stream:
        return stream.read_buffer()


def check_digest(data: pa.Buffer, file: DataFile) -> None:
    """Raise LakeCorrupt if these are not the bytes of a file."""
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise LakeCorrupt(file.path, f"its bytes{file.where} do not match its digest")


@lru_cache(maxsize=256)
def _pick_fields(table: str, columns: tuple[str, ...] | None) -> pa.Schema:
    """Return fields of a table; cached, as this takes a tenth of the time to read a small file."""
    fields = TABLES[table].arrow
    return fields if columns is None else pa.schema([fields.field(name) for name in columns])


def fill_fields(rows: pa.Table | pa.RecordBatch, fields: pa.Schema) -> pa.Table:
    """Return the rows with these fields, of their types, NULL if the rows lack one."""
    if isinstance(rows, pa.Table) and rows.schema.equals(fields, check_metadata=True):
        return rows  # the common case; building a table from one row is slow
    present = set(rows.schema.names)
    columns = [
        rows[field.name].cast(field.type)
        if field.name in present
        else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=fields)


def keep_rows(rows: pa.Table, is_kept: pa.ChunkedArray | pa.BooleanArray) -> pa.Table:
    """Return the rows where ``is_kept``: like ``filter``, but at once if it keeps all or none."""
    chunks = is_kept.chunks if isinstance(is_kept, pa.ChunkedArray) else [is_kept]
    count = sum(chunk.true_count for chunk in chunks)
    if count == rows.num_rows:
        return rows
    return rows.filter(is_kept) if count else rows.slice(0, 0)


def filter_rows(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    """Return the rows with one of ``values`` in ``column``."""
    if not rows.num_rows:
        return rows
    # Half the time of ``pc.is_in``.
    is_one = pc.call_function("is_in", [rows[column]], pc.SetLookupOptions(values))
    return keep_rows(rows, is_one)


_FEW_STRUCTS = 100
"""Up to this many rows, structs cost less than the fixed cost of each column."""


def make_rows(
    table: Table, rows: Sequence[tuple[Any, ...]] | Sequence[Mapping[str, Any]]
) -> pa.Table:
    """Return rows as Arrow, each a tuple of the table's columns in order, or a dict of them."""
    if not rows:
        return table.empty
    if len(rows) <= _FEW_STRUCTS:
        return pa.Table.from_struct_array(pa.array(rows, table.struct))
    if isinstance(rows[0], dict):
        return pa.Table.from_pylist(rows, schema=table.arrow)
    fields = zip(table.arrow, zip(*rows, strict=True), strict=True)
    return pa.table([pa.array(values, field.type) for field, values in fields], schema=table.arrow)


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the cyclic garbage collector, which visits all rows again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_FEW = 16
"""Up to this many values, a cast takes longer than it saves."""


def list_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return the values of a column, None for NULL: like ``to_pylist``, but faster for hashes."""
    if column.type == _HASHES and len(column) > _FEW:
        column = column.cast(pa.list_(pa.binary()))
    is_hash = pa.types.is_fixed_size_binary(column.type)
    values: list[Any] = (
        column.to_numpy(zero_copy_only=False).tolist() if is_hash else column.to_pylist()
    )
    return values


_HASHES = pa.list_(pa.binary(32))


def iter_tuples(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of the columns ``names``, row by row."""
    if not rows.num_rows:
        return iter(())
    return zip(*(list_values(rows[name]) for name in names), strict=True)


def iter_dicts(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield each row as a dict: like ``to_pylist``, but faster for hashes."""
    names = rows.column_names
    return (dict(zip(names, values, strict=True)) for values in iter_tuples(rows, names))


def item_bytes(values: pa.Array | pa.ChunkedArray) -> memoryview:
    """Return the raw bytes of fixed-width values without NULLs."""
    joined = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    width = joined.type.bit_width // 8
    first = joined.offset * width
    buffer = joined.buffers()[1]
    if buffer is None:
        return memoryview(b"")
    return memoryview(buffer)[first : first + len(joined) * width]

"""Few rows as a plain Parquet file: what a follower writes all the time, and merges soon.

To pack them takes three times as long. The extension in C makes the bytes that pyarrow makes, in a
fraction of its time; what the extension declines, or where there is none, is for pyarrow to write.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tonlake.lake.file.native import NATIVE

if TYPE_CHECKING:
    from tonlake.lake.schema import Table

_COUNTED = ("int32", "int64", "time")
_ASCENDING = ("lt", "seqno", "seqno_start", "seqno_end", "utime", "now", "time")
"""Columns that lie close together in a commit, so that their least and greatest values tell
whether its files have what is asked for; of all others each commit has the whole range."""

_NO_ROWS = b"\x16\x00\x19\x0c"
"""What stands in the footer of a file without rows for their number and their row groups: fields 3
and 4 of FileMetaData, in Thrift's compact protocol."""

_END_BYTES = 8
"""The size of the footer, and ``PAR1``."""


@cache
def choose_plain(table: Table) -> dict[str, Any]:
    """Return pyarrow's options for a plain file of a table."""
    return {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": _list_bounded(table),
        **choose_common(table),
    }


def choose_common(table: Table) -> dict[str, Any]:
    """Return pyarrow's options for every file of a table."""
    return {
        "sorting_columns": [pq.SortingColumn(at) for at in _number_sorted(table)],
        "write_page_checksum": True,
        "store_schema": False,
    }


def _list_bounded(table: Table) -> list[str]:
    return [
        column.name
        for column in table.columns
        if column.type in _COUNTED and column.name.endswith(_ASCENDING)
    ]


def _number_sorted(table: Table) -> list[int]:
    return [table.names.index(name) for name in table.sort]


class _Plan(NamedTuple):
    """What the extension takes of a table: the same for all its plain files."""

    head: bytes
    """The footer up to the number of rows."""

    tail: bytes
    """The footer behind the row groups."""

    bounded: bytes
    """Of each column, whether its least and greatest value are told: 0 or 1."""

    sorted: bytes
    """Numbers of the columns that the rows are ordered by."""


def encode_plain(rows: pa.Table, table: Table) -> bytes | None:
    """Return the file of rows, in the table's order; None where pyarrow is to write it.

    That is where there is no extension, rows have NULLs in what they are ordered by, columns are
    not those of the schema, or one has more than 1,024 values.
    """
    if NATIVE is None or not rows.num_rows or not rows.schema.equals(table.arrow):
        return None
    batches = rows.to_batches()
    if len(batches) > 1:
        batches = rows.combine_chunks().to_batches()
    if len(batches) != 1:
        return None
    data: bytes | None = NATIVE.encode(*batches[0].__arrow_c_array__(), _plan(table))
    return data


@cache
def _plan(table: Table) -> _Plan:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.arrow, **choose_plain(table)):
        pass
    file = sink.getvalue().to_pybytes()
    size = int.from_bytes(file[-_END_BYTES:][:4], "little")
    head, _, tail = file[-_END_BYTES - size : -_END_BYTES].rpartition(_NO_ROWS)
    bounded = _list_bounded(table)
    return _Plan(
        head,
        tail,
        bytes(name in bounded for name in table.names),
        bytes(_number_sorted(table)),
    )

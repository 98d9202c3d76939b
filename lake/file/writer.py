"""Encodes rows as Parquet: sorted, the same bytes for the same rows, and plain if they are few."""

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tonlake.lake.file.rows import serialize_schema
from tonlake.lake.log.disk import naming_full_disk
from tonlake.lake.schema import STATE_CELLS, Column, Table
from tonlake.lake.settings import LakeSettings

_COUNTED = ("int32", "int64", "time")
_ASCENDING = ("lt", "seqno", "seqno_start", "seqno_end", "utime", "now", "time")
"""Columns whose values lie close together in a commit, so that their bounds show which files can
match a filter; all other columns span their complete range in each commit."""


def list_bounded(table: Table) -> list[str]:
    """Return the columns whose bounds show which files can match a filter."""
    return [
        column.name
        for column in table.columns
        if column.type in _COUNTED and column.name.endswith(_ASCENDING)
    ]


PLAIN_ROWS = 1000
"""Files up to this many rows are written without compression, dictionaries and bloom filters: they
are written often, read fast and merged soon."""

_REPEATING = frozenset(
    {
        *("account", "tx_account", "source", "destination"),
        *("code_hash", "body_hash", "action_list_hash", "trace_id", "wallet_code_hash"),
        *("owner", "jetton", "collection", "marketplace", "multisig"),
    }
)
"""The hashes that repeat. In others, and in ``boc`` and ``cell``, nearly every value is new, and a
dictionary would be built only to be discarded (measured: 1 to 4 % more bytes)."""

_LOGICAL_TIMES = frozenset(
    {"lt", "tx_lt", "prev_trans_lt", "last_trans_lt", "storage_last_trans_lt"}
    | {"start_lt", "end_lt"}
)
"""Columns with delta encoding: sorted, or close to their neighbours, and seldom repeated (measured:
32 of 721 bytes per transaction less than with dictionaries; no gain for ``created_lt``)."""

_PLAIN = frozenset({"boc", "cell", "balance"})
"""Other columns that seldom repeat. ``value`` would take 1.4 bytes a transaction less without a
dictionary, but sums of it would take a seventh longer."""

_PAGE_BYTES = 2 << 20
"""Size of a page, which is compressed alone. Those of ``boc``, which repeat addresses, bodies and
hashes, take 5.2 bytes a transaction less than with the default of 1 MiB; of 4 MiB, 7.6, but are
read a quarter slower, not a tenth."""

_DICTIONARY_BYTES = 8 << 20
"""Most bytes of a column's distinct values in a row group, each written once. Decoded bodies
repeat, but exceed the default of 1 MiB (measured: ``message_bodies`` take 4 to 21 % less where they
repeat, else 0.7 % more; ``messages`` 0.5 to 12 % less; ``traces`` 1 % more). 16 MiB take more."""

_BOC_LEVELS, _MAX_LEVEL = 4, 22
"""Bags, much of a lake, are compressed more and take more time, unless a file has less than half a
row group: it is merged later. In an ingest of small blocks that is a twelfth of the time, and files
with 1.5 % more bytes until they are merged."""

_LOOKED_UP = frozenset(
    {"hash", "root_hash", "file_hash", "msg_hash", "hash_norm", "in_msg_hash"}
    | {"trace_id", "parent_hash", "uri"}
)
"""Columns that rows are looked up by: a bloom filter shows which row groups to skip."""

_FEW_ROWS = 1_000
"""Up to this many rows are joined before they are sorted."""

_BLOOM_ODDS = 0.03
"""False positive rate of bloom filters.

The size of a filter is a power of two: 64 KiB for 65,536 hashes, and twice that for a rate of 0.01.
"""

_CELL_BLOOM_ODDS = 0.0005
"""The same for state cells, which have no index: an ingest looks up many of them at once, each in
all files of the lake. Their files grow by 3.5 %."""


def encode_parquet(rows: pa.Table, table: Table, settings: LakeSettings) -> pa.Buffer:
    """Return the Parquet file of ``rows``, which already have the schema's fields."""
    sink = pa.BufferOutputStream()
    write_parquet(sink, [sort_rows(rows, table)], table, settings, rows.num_rows)
    return sink.getvalue()


_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def encode_stream(rows: pa.Table, table: Table) -> bytes:
    """Return rows as an Arrow IPC stream: for few, in a twentieth of the time of Parquet.

    They stay in the order in which they were decoded or derived, until they are merged.
    """
    batches = rows.to_batches()
    batch = batches[0] if len(batches) == 1 else rows.combine_chunks().to_batches()[0]
    return b"".join((serialize_schema(table), batch.serialize(), _END_OF_STREAM))


def write_parquet(
    sink: pa.NativeFile | IO[bytes],
    pieces: Iterable[pa.Table],
    table: Table,
    settings: LakeSettings,
    max_rows: int,
) -> int:
    """Write at most ``max_rows`` sorted rows, however cut into pieces; return their number."""
    count = 0
    group_rows = min(settings.row_group_rows, max_rows) if max_rows > PLAIN_ROWS else 0
    options = _choose_options(table, settings, group_rows)
    with pq.ParquetWriter(sink, table.arrow, **options) as writer:
        for group in _cut_groups(pieces, settings.row_group_rows):
            writer.write_table(group, row_group_size=settings.row_group_rows)
            count += group.num_rows
    return count


@lru_cache(128)
def _choose_options(table: Table, settings: LakeSettings, group_rows: int) -> dict[str, Any]:
    """Return pyarrow's options for row groups of a number of rows; 0: those of plain files."""
    common = {
        "sorting_columns": [pq.SortingColumn(table.names.index(name)) for name in table.sort],
        "write_page_checksum": True,
        "store_schema": False,
    }
    if not group_rows:
        plain = {"compression": "none", "use_dictionary": False}
        return common | plain | {"write_statistics": list_bounded(table)}
    level = settings.zstd_level
    more = _BOC_LEVELS if group_rows * 2 >= settings.row_group_rows else 0
    often = [column for column in table.columns if _repeats(column)]
    odds = _CELL_BLOOM_ODDS if table is STATE_CELLS else _BLOOM_ODDS
    return common | {
        "compression": "zstd",
        "compression_level": {
            name: min(level + more, _MAX_LEVEL) if name == "boc" else level for name in table.names
        },
        "data_page_size": _PAGE_BYTES,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "use_dictionary": [each.name + ".list.element" * (each.type == "texts") for each in often],
        "column_encoding": {
            name: "DELTA_BINARY_PACKED" for name in table.names if name in _LOGICAL_TIMES
        },
        "write_statistics": [column.name for column in table.columns if not _may_mislead(column)],
        "bloom_filter_options": {
            name: {"ndv": group_rows, "fpp": odds} for name in table.names if name in _LOOKED_UP
        },
    }


def _cut_groups(pieces: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Yield the rows in groups of ``size``, each in one chunk: pages end where chunks do."""
    held: list[pa.Table] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += piece.num_rows
        if count < size:
            continue
        joined = pa.concat_tables(held)
        even = count - count % size
        for start in range(0, even, size):
            yield joined.slice(start, size).combine_chunks()
        held, count = [joined.slice(even)], count - even
    if count:
        yield pa.concat_tables(held).combine_chunks()


def _repeats(column: Column) -> bool:
    if column.type == "hash":
        return column.name in _REPEATING
    return column.name not in _PLAIN | _LOGICAL_TIMES


def _may_mislead(column: Column) -> bool:
    """Whether DuckDB 2.0.0 could take all rows for NULL: some are, others have one value."""
    return column.nullable and column.type in {"hash", "bytes"} and not _repeats(column)


def sort_rows(rows: pa.Table, table: Table) -> pa.Table:
    """Return the rows in the table's order; equal keys keep their order."""
    if rows.num_rows <= 1:
        return rows
    # Arrow sorts a batch faster than a table, and takes rows from one chunk faster than from many.
    joined = rows.combine_chunks() if rows.num_rows <= _FEW_ROWS else rows
    keys = joined.select(table.sort)
    batches = keys.to_batches()
    one = keys if len(batches) > 1 else batches[0]
    order = pc.call_function("sort_indices", [one], table.order)
    in_place = pa.arange(0, rows.num_rows).view(order.type)
    return rows if order.equals(in_place) else joined.take(order)


WINDOW_ROWS = 16_384
"""Rows in the window of a sorted part."""

Key = tuple[Any, ...]


def merge_rows(
    pieces: Iterable[pa.Table], table: Table, memory_rows: int, folder: Path
) -> Iterator[pa.Table]:
    """Yield all rows in the table's order, ties as given; more than ``memory_rows`` spill."""
    parts = _sort_parts(pieces, table, memory_rows)
    first = next(parts, None)
    if first is None:
        return
    second = next(parts, None)
    if second is None:
        yield first
        return
    with naming_full_disk(folder), tempfile.TemporaryFile(dir=folder) as file:
        ends: list[int] = []
        with pa.ipc.new_file(file, table.arrow) as writer:
            while first is not None:
                batches = first.combine_chunks().to_batches(max_chunksize=WINDOW_ROWS)
                for batch in batches:
                    writer.write_batch(batch)
                ends.append((ends[-1] if ends else 0) + len(batches))
                first, second = second, next(parts, None)
        file.flush()
        with closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as mapped:
            spilled = pa.ipc.open_file(pa.py_buffer(mapped))
            spans = zip([0, *ends[:-1]], ends, strict=True)
            yield from _merge([_read_batches(spilled, *span) for span in spans], table)
            del spilled


def _sort_parts(pieces: Iterable[pa.Table], table: Table, memory_rows: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += piece.num_rows
        if count >= memory_rows:
            yield sort_rows(pa.concat_tables(held), table)
            held, count = [], 0
    if held:
        yield sort_rows(pa.concat_tables(held), table)


def _read_batches(
    spilled: pa.ipc.RecordBatchFileReader, start: int, end: int
) -> Iterator[pa.Table]:
    for number in range(start, end):
        yield pa.Table.from_batches([spilled.get_batch(number)])


class _Head(NamedTuple):
    """The next window of a sorted part, with its least and its greatest key."""

    window: pa.Table
    rest: Iterator[pa.Table]
    first: Key
    last: Key


def _merge(parts: Iterable[Iterator[pa.Table]], table: Table) -> Iterator[pa.Table]:
    heads = [head for part in parts if (head := _next_head(part, table)) is not None]
    while heads:
        # Windows that begin after the first of these ends are not needed yet.
        bound = min(head.last for head in heads)
        at_work = [number for number, head in enumerate(heads) if head.first <= bound]
        joined = pa.concat_tables([heads[number].window for number in at_work])
        stops = np.cumsum([heads[number].window.num_rows for number in at_work])
        order = pc.sort_indices(joined, [(name, "ascending") for name in table.sort])
        ends = pa.array(stops - 1, order.type)
        taken = order.slice(0, pc.min(pc.index_in(ends, value_set=order)).as_py() + 1)
        yield joined.take(taken)
        places = np.searchsorted(stops, taken.to_numpy(), side="right")
        counts = np.bincount(places, minlength=len(stops)).tolist()
        for number, count in zip(at_work, counts, strict=True):
            heads[number] = _advance(heads[number], count, table)
        heads = [head for head in heads if head.window.num_rows]


def _next_head(rest: Iterator[pa.Table], table: Table) -> _Head | None:
    window = next(rest, None)
    return None if window is None else _Head(window, rest, *_edge_keys(window, table))


def _advance(head: _Head, count: int, table: Table) -> _Head:
    """Return the head without its first ``count`` rows; empty if its part has ended."""
    if count < head.window.num_rows:
        window = head.window.slice(count)
        return head if not count else _Head(window, head.rest, *_edge_keys(window, table))
    return _next_head(head.rest, table) or head._replace(window=head.window.slice(count))


def _edge_keys(window: pa.Table, table: Table) -> list[Key]:
    """Return the first and the last key of rows; as in Arrow, NULL sorts last."""
    keys = window.select(table.sort)
    edges = (keys.slice(at, 1).to_pylist()[0].values() for at in (0, keys.num_rows - 1))
    return [tuple((value is None, value) for value in values) for values in edges]

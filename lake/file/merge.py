"""Merges the rows of many files into one order, in the memory of a few of them.

Rows are sorted in parts as large as memory allows. The parts are spilled to an unnamed file and
then merged, reading a window of each at a time.
"""

from __future__ import annotations

import mmap
import tempfile
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.writer import sort_rows
from tonlake.lake.log.disk import naming_full_disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tonlake.lake.schema import Table

WINDOW_ROWS = 16_384
"""Rows in the window of a sorted part."""

Key = tuple[Any, ...]


def merge_rows(
    pieces: Iterable[pa.Table], table: Table, memory_rows: int, folder: Path
) -> Iterator[pa.Table]:
    """Yield the rows of all pieces in the table's order; equal keys keep their order.

    At most ``memory_rows`` are held in memory; the others are spilled to a file in ``folder``.

    Raises:
        LakeFull: no room for them.
    """
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
    for piece in pieces:
        held.append(piece)
        if sum(rows.num_rows for rows in held) >= memory_rows:
            yield sort_rows(pa.concat_tables(held), table)
            held = []
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
        starts, total = [], 0
        for number in at_work:
            starts.append(total)
            total += heads[number].window.num_rows
        order = pc.sort_indices(joined, [(name, "ascending") for name in table.sort])
        ends = pa.array([start - 1 for start in (*starts[1:], total)], order.type)
        taken = order.slice(0, pc.min(pc.index_in(ends, value_set=order)).as_py() + 1)
        yield joined.take(taken)
        gone = pc.value_counts(_number_parts(taken, starts))
        counts = {row["values"]: row["counts"] for row in gone.to_pylist()}
        for place, number in enumerate(at_work):
            heads[number] = _advance(heads[number], counts.get(place, 0), table)
        heads = [head for head in heads if head.window.num_rows]


def _number_parts(taken: pa.Array, starts: list[int]) -> pa.Array:
    """Return the part number of each row, given the rows where the parts start."""
    numbers = pc.cast(pc.greater_equal(taken, starts[0]), pa.int32())
    for start in starts[1:]:
        numbers = pc.add(numbers, pc.cast(pc.greater_equal(taken, start), pa.int32()))
    return pc.subtract(numbers, 1)


def _next_head(rest: Iterator[pa.Table], table: Table) -> _Head | None:
    window = next(rest, None)
    return None if window is None else _Head(window, rest, *_edge_keys(window, table))


def _advance(head: _Head, count: int, table: Table) -> _Head:
    """Return the head without its first ``count`` rows; empty if its part has ended."""
    if count < head.window.num_rows:
        window = head.window.slice(count)
        return head if not count else _Head(window, head.rest, *_edge_keys(window, table))
    return _next_head(head.rest, table) or head._replace(window=head.window.slice(count))


def _edge_keys(window: pa.Table, table: Table) -> tuple[Key, Key]:
    keys = window.select(table.sort)
    first, last = (keys.slice(at, 1).to_pylist()[0] for at in (0, keys.num_rows - 1))
    return _make_key(first.values()), _make_key(last.values())


def _make_key(values: Iterable[Any]) -> Key:
    """Return values as a key that sorts as in Arrow: NULL last."""
    return tuple((value is None, value) for value in values)

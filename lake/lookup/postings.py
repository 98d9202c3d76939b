"""Postings: for each key, the rows it is found in, in an order of their own.

Three arrays ``<name>.key`` (sorted, each key once), ``<name>.end`` (where its rows end) and
``<name>.row``. Keys are 64-bit; a hash is cut to its first 8 bytes, so what is found must be
compared with the whole hash. Where every key has one row, ``end`` is left out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lake.lookup.native import NATIVE

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from lake.lookup.runfile import RunWriter

KEY_BYTES = 8


def cut_hash(value: bytes) -> int:
    """Return a hash's key: its first 8 bytes, big-endian, so that keys sort like hashes."""
    return int.from_bytes(value[:KEY_BYTES], "big")


def write_postings(
    writer: RunWriter, name: str, table: pa.Table, unique: Sequence[str] = ("row",)
) -> None:
    """Write the three arrays of a table with the columns ``key`` and ``row``, and others.

    Args:
        writer: The run.
        name: Name of the postings.
        table: Its rows are ordered by all columns, in the order in which those stand. A column
            ``place`` is written as well, as ``<name>.place``: a message's place in its record.
        unique: Rows that equal another one in the key and in these columns are left out.
    """
    table = table.sort_by([(column, "ascending") for column in table.column_names])
    table = _drop_twins(table.combine_chunks(), ("key", *unique))
    runs = pc.run_end_encode(table["key"].combine_chunks(), run_end_type=pa.int64())
    writer.add(f"{name}.key", "Q", item_bytes(runs.values))
    if len(runs.values) != table.num_rows:
        writer.add(f"{name}.end", "I", item_bytes(runs.run_ends.cast(pa.uint32())))
    writer.add(f"{name}.row", "I", item_bytes(table["row"]))
    if "place" in table.column_names:
        writer.add(f"{name}.place", "B", item_bytes(table["place"].cast(pa.uint8())))


def _drop_twins(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the sorted table without rows that equal the one before in some columns."""
    if table.num_rows < 2:  # noqa: PLR2004 - a pair is needed for twins
        return table
    above, below = table.slice(0, table.num_rows - 1), table.slice(1)
    same = pc.equal(above[columns[0]], below[columns[0]])
    for column in columns[1:]:
        same = pc.and_(same, pc.equal(above[column], below[column]))
    if not pc.any(same).as_py():
        return table
    kept = pa.concat_arrays([pa.array([True]), pc.invert(same).combine_chunks()])
    return table.filter(kept).combine_chunks()


def as_arrow(values: array[int]) -> pa.Array:
    """Return the items as an Arrow array over the same memory."""
    kind = {"Q": pa.uint64(), "q": pa.int64(), "I": pa.uint32()}[values.typecode]
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def item_bytes(values: pa.Array | pa.ChunkedArray) -> memoryview:
    """Return the items of fixed-width values without NULLs as plain bytes."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    width = whole.type.bit_width // 8
    first = whole.offset * width
    buffer = whole.buffers()[1]
    if buffer is None:
        return memoryview(b"")
    return memoryview(buffer)[first : first + len(whole) * width]


class Postings:
    """Postings of a run, open for reading."""

    def __init__(self, arrays: dict[str, memoryview], name: str) -> None:
        """Take the arrays of an open run."""
        self._keys = arrays[f"{name}.key"]
        self._ends = arrays.get(f"{name}.end")
        self.rows = arrays[f"{name}.row"]
        self.places = arrays.get(f"{name}.place", self.rows)

    def find(self, key: int) -> tuple[int, int]:
        """Return where the key's rows begin and end in ``rows``."""
        at = bisect_left(self._keys, key)
        if at == len(self._keys) or self._keys[at] != key:
            return 0, 0
        return self._span(at)

    def find_between(self, first: int, last: int) -> tuple[int, int]:
        """Return where the rows of a span of keys, both ends included, begin and end in ``rows``.

        They stand by key, and those of one key as they were written.
        """
        low = bisect_left(self._keys, first)
        high = bisect_right(self._keys, last)
        if low >= high:
            return 0, 0
        return self._span(low)[0], self._span(high - 1)[1]

    def find_others(
        self, times: memoryview, hashes: list[bytes], own: list[int]
    ) -> list[tuple[int, int]]:
        """Return the rows of each hash that are not of its own time, with the hash's number.

        Args:
            times: The logical time of each row.
            hashes: What is looked for.
            own: The time that is left out, for each hash.
        """
        if NATIVE is not None:
            found: list[tuple[int, int]] = NATIVE.find_others(
                self._keys, self._ends, self.rows, times, hashes, own
            )
            return found
        return [
            (number, row)
            for number, (wanted, time) in enumerate(zip(hashes, own, strict=True))
            for row in self.rows[slice(*self.find(cut_hash(wanted)))]
            if times[row] != time
        ]

    def _span(self, at: int) -> tuple[int, int]:
        if self._ends is None:
            return at, at + 1
        return (self._ends[at - 1] if at else 0), self._ends[at]

"""Postings: for each key, the rows it is found in, in an order of their own.

Three arrays ``<name>.key`` (sorted, each key once), ``<name>.end`` (where its rows end) and
``<name>.row``. Keys are 64-bit; a hash is cut to its first 8 bytes, so what is found must be
compared with the whole hash. Where every key has one row, ``end`` is left out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lake.lookup.native import NATIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.lookup.runfile import Bytes, RunWriter

KEY_BYTES = 8

_FEW_ROWS = 300
"""So many are listed in Python: Arrow, asked for a dozen things, takes as long for one."""


def cut_hash(value: bytes) -> int:
    """Return a hash's key: its first 8 bytes, big-endian, so that keys sort like hashes."""
    return int.from_bytes(value[:KEY_BYTES], "big")


def write_postings(
    writer: RunWriter,
    name: str,
    columns: Mapping[str, array[int]],
    unique: Sequence[str] = ("row",),
) -> None:
    """Write the three arrays of a table with the columns ``key`` and ``row``, and others.

    Args:
        writer: The run.
        name: Name of the postings.
        columns: The table. Its rows are ordered by all columns, in the order in which those stand,
            the key first. A column ``place`` is written as well, as ``<name>.place``: a message's
            place in its record.
        unique: Rows that equal another one in the key and in these columns are left out.
    """
    few = len(columns["key"]) <= _FEW_ROWS
    found = _list_few(columns, unique) if few else _list_many(columns, unique)
    writer.add(f"{name}.key", "Q", found.keys)
    if len(found.ends) != len(found.rows):
        writer.add(f"{name}.end", "I", found.ends)
    writer.add(f"{name}.row", "I", found.rows)
    if found.places is not None:
        writer.add(f"{name}.place", "B", found.places)


class _Listed(NamedTuple):
    """Postings as they are written."""

    keys: Bytes
    ends: array[int] | memoryview
    rows: array[int] | memoryview
    places: Bytes | None


def _list_few(columns: Mapping[str, array[int]], unique: Sequence[str]) -> _Listed:
    names = list(columns)
    same = itemgetter(*(names.index(name) for name in ("key", *unique)))
    row_at, place_at = names.index("row"), names.index("place") if "place" in names else None
    keys, ends, rows, places = array("Q"), array("I"), array("I"), bytearray()
    before = None
    for row in sorted(zip(*columns.values(), strict=True)):
        if before is not None and same(row) == same(before):
            continue
        if before is None or row[0] != before[0]:
            keys.append(row[0])
            ends.append(len(rows))
        before = row
        rows.append(row[row_at])
        ends[-1] = len(rows)
        if place_at is not None:
            places.append(row[place_at])
    return _Listed(keys, ends, rows, None if place_at is None else places)


def _list_many(columns: Mapping[str, array[int]], unique: Sequence[str]) -> _Listed:
    table = pa.table({name: as_arrow(column) for name, column in columns.items()})
    table = table.sort_by([(column, "ascending") for column in table.column_names])
    table = _drop_twins(table.combine_chunks(), ("key", *unique))
    runs = pc.run_end_encode(table["key"].combine_chunks(), run_end_type=pa.int64())
    places = table["place"].cast(pa.uint8()) if "place" in columns else None
    return _Listed(
        item_bytes(runs.values),
        item_bytes(runs.run_ends.cast(pa.uint32())).cast("I"),
        item_bytes(table["row"]).cast("I"),
        None if places is None else item_bytes(places),
    )


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


def pick_rows(columns: Mapping[str, array[int]], kept: Sequence[bool]) -> dict[str, array[int]]:
    """Return those rows of a table that are kept."""
    return {
        name: array(column.typecode, compress(column, kept)) for name, column in columns.items()
    }


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

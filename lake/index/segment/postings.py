"""Postings: for each key, the rows that have it, in a defined order.

There are three arrays: ``<name>.key`` (sorted, unique), ``<name>.end`` (the end of each key's rows)
and ``<name>.row``. The key of a hash has just enough leading bits to make collisions rare in a
segment of that size, so results must be compared with the complete hash. If most keys have one row,
``end`` is left out, and a key is repeated for each of its rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.segment.native import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tonlake.lake.index.segment.file import SegmentWriter, Words

KEY_BYTES = 8
_HASH_BYTES = 32

_MIN_BITS = 24
_SPARE_BITS = 8
"""A hash that a segment does not have collides with a key once in 2 to the power of this; then a
record is read in vain."""

_SPARE_BITS_APART = 16
"""The same if keys must differ whenever hashes do; otherwise SQL answers."""

_MAX_REPEATED = 1 / 3
"""Largest share of rows with the same key as the previous row for which keys are repeated."""


def cut_hash(value: bytes | bytearray) -> int:
    """Return the first 8 bytes of a hash, big-endian, so that keys sort like hashes."""
    return int.from_bytes(value[:KEY_BYTES], "big")


def count_cut_bits(count: int, spare_bits: int = _SPARE_BITS) -> int:
    """Return how many low bits of 64 to cut off the keys of ``count`` hashes."""
    return 8 * KEY_BYTES - max(_MIN_BITS, count.bit_length() + spare_bits)


def write_postings(
    writer: SegmentWriter,
    name: str,
    columns: Mapping[str, Words],
    unique: Sequence[str] = ("row",),
    *,
    hashed: bool = False,
    apart: bool = False,
) -> None:
    """Write postings from a table with the columns ``key`` and ``row``, and others.

    Args:
        writer: The segment.
        name: Name of the postings.
        columns: The table. It is sorted by all columns, in their order, the key first. A column
            ``place``, the place of a message in its record, is written as ``<name>.place``.
        unique: Rows equal to another in the key and these columns are left out.
        hashed: Whether keys are hashes; other keys are written in full.
        apart: Whether keys of hashes get as many more bits, up to 63, as distinguish them all.
    """
    spare_bits = _SPARE_BITS_APART if apart else _SPARE_BITS
    cut_bits = count_cut_bits(len(columns["key"]), spare_bits) if hashed else 0
    if apart:
        cut_bits = min(cut_bits, max(1, NATIVE.count_equal_bits(columns["key"])))
    names = list(columns)
    mask = sum(1 << names.index(column) for column in unique)
    kept = tuple(names.index(column) for column in ("key", "row", "place") if column in columns)
    keys, rows, *places = NATIVE.list_postings(tuple(columns.values()), cut_bits, mask, kept)
    each, ends = NATIVE.group_keys(keys)
    if len(rows) - len(each) > _MAX_REPEATED * len(rows):
        writer.add_numbers(f"{name}.key", each, cut_bits, shortest=True)
        writer.add_numbers(f"{name}.end", ends, shortest=True)
    else:
        writer.add_numbers(f"{name}.key", keys, cut_bits, shortest=True)
    writer.add_numbers(f"{name}.row", rows)
    for column in places:
        writer.add_numbers(f"{name}.place", column)


def write_keys(writer: SegmentWriter, name: str, keys: Words) -> None:
    """Write the keys of hashes, ascending and unique."""
    cut_bits = count_cut_bits(len(keys))
    writer.add_numbers(name, NATIVE.cut_keys(keys, cut_bits), cut_bits, shortest=True)


class Postings:
    """Postings of a segment, open for reading."""

    def __init__(self, arrays: Mapping[str, Any], name: str) -> None:
        """Take the arrays of an open segment."""
        self._keys = arrays[f"{name}.key"]
        self._ends = arrays.get(f"{name}.end")
        self.rows = arrays[f"{name}.row"]
        self.places = arrays.get(f"{name}.place", self.rows)

    def find(self, key: int) -> tuple[int, int]:
        """Return the start and end of a key's rows in ``rows``."""
        at = self._keys.find(key)
        if at < 0:
            return 0, 0
        if self._ends is None:
            return at, bisect_right(self._keys, self._keys[at], at)
        return (self._ends[at - 1] if at else 0), self._ends[at]

    def choose(self, hashes: list[bytes]) -> list[bytes]:
        """Return the hashes that may have rows."""
        places = zip(hashes, self._keys.find_hashes(hashes), strict=True)
        return [each for each, at in places if at >= 0]

    def list_spans(self) -> list[tuple[int, int]]:
        """Return the start and end of each key's rows; row by row if keys are repeated."""
        ends = range(1, len(self.rows) + 1) if self._ends is None else self._ends[:]
        return list(pairwise((0, *ends)))

    def list_rows(self, key: int) -> list[int]:
        """Return the rows of a key, in order."""
        start, end = self.find(key)
        rows: list[int] = self.rows[start:end]
        return rows

    def bound_hashes(self, first: int, last: int) -> tuple[bytes, bytes]:
        """Return the least and greatest hash possible in a range of ``rows``."""
        bits = self._keys.cut_bits
        low, high = self.key_at(first) << bits, (self.key_at(last) + 1 << bits) - 1
        rest = _HASH_BYTES - KEY_BYTES
        return (
            low.to_bytes(KEY_BYTES, "big") + bytes(rest),
            high.to_bytes(KEY_BYTES, "big") + b"\xff" * rest,
        )

    def list_chunks(self, size: int, *, descending: bool) -> Iterator[dict[int, int]]:
        """Yield rows by place, by ascending or descending key, all rows of a key together.

        The first chunk has about ``size`` rows, each further one twice as many.
        """
        places = range(len(self.rows))
        start, most = 0, len(places)
        while start < most:
            end = min(most, start + size)
            ordered = places[::-1] if descending else places
            while end < most and self.key_at(ordered[end]) == self.key_at(ordered[end - 1]):
                end += 1
            yield {at: self.rows[at] for at in ordered[start:end]}
            start, size = end, size * 2

    def key_at(self, at: int) -> int:
        """Return the key at an index of ``rows``."""
        key: int = self._keys[at if self._ends is None else bisect_right(self._ends, at)]
        return key

    def find_between(self, first: int, last: int) -> tuple[int, int]:
        """Return the start and end in ``rows`` of a range of keys, both ends included.

        Rows are sorted by key. Not for keys of hashes.
        """
        low = bisect_left(self._keys, first)
        high = bisect_right(self._keys, last)
        if low >= high:
            return 0, 0
        if self._ends is None:
            return low, high
        return (self._ends[low - 1] if low else 0), self._ends[high - 1]

    def list_nearest(
        self,
        times: Any,  # noqa: ANN401 - numbers
        places: range,
        span: tuple[int, int],
        most: int,
        *,
        descending: bool,
    ) -> list[int]:
        """Return the first ``most`` of consecutive places by the times of their rows, in order.

        ``span`` is the range of times, both ends included.
        """
        ends = places.start, places.stop
        found: list[int] = NATIVE.list_nearest(
            self.rows.data, times.data, *ends, *span, most, descending
        )
        return found

    def find_others(
        self,
        times: Any,  # noqa: ANN401 - numbers
        hashes: list[bytes],
        own: list[int],
    ) -> list[tuple[int, int]]:
        """Return the rows of each hash that have another time, with the number of the hash.

        ``times`` are the logical times of all rows, ``own`` the time to leave out for each hash.
        """
        packed = self._keys, self._ends, self.rows, times
        views = (None if numbers is None else numbers.data for numbers in packed)
        found: list[tuple[int, int]] = NATIVE.find_others(*views, hashes, own)
        return found

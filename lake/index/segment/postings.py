"""Postings: for each key, the rows that have it, in their order.

There are three arrays: ``<name>.key`` (sorted), ``<name>.end`` (the end of each key's rows) and
``<name>.row``. The key of a hash is its first four bytes, so rows must be compared with the
complete hash; that of an integer its low 32 bits. If most keys have one row, ``end`` is empty, and
a key is repeated for each of its rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.file.rows import item_bytes
from tonlake.lake.index.segment.file import HASH_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.index.segment.file import SegmentFile, SegmentWriter

KEY_BYTES = 4
_KEY_MASK = (1 << 32) - 1

_MAX_REPEATED = 1 / 3
"""Largest share of rows with the same key as the previous row for which keys are repeated."""


def cut_hash(value: bytes) -> int:
    """Return the key of a hash."""
    return int.from_bytes(value[:KEY_BYTES], "big")


def cut_number(value: int) -> int:
    """Return the key of an integer."""
    return value & _KEY_MASK


def list_keys(values: pa.Array) -> pa.Array:
    """Return the keys of hashes or integers, none of which is NULL."""
    if not pa.types.is_fixed_size_binary(values.type):
        whole = pc.cast(values, pa.int64())
        return pc.cast(pc.bit_wise_and(whole, pa.scalar(_KEY_MASK, pa.int64())), pa.uint32())
    words = array("I", item_bytes(values).cast("I")[:: HASH_BYTES // KEY_BYTES])
    words.byteswap()
    return pa.Array.from_buffers(pa.uint32(), len(words), [None, pa.py_buffer(words)])


def write_postings(writer: SegmentWriter, name: str, values: pa.Array, rows: pa.Array) -> None:
    """Write postings of values and rows, which are in order; rows without a value are left out."""
    if values.null_count:
        present = pc.is_valid(values)
        values, rows = values.filter(present), rows.filter(present)
    keys = list_keys(values)
    order = pc.sort_indices(keys)  # a stable sort
    keys, rows = keys.take(order), rows.take(order)
    runs = pc.run_end_encode(keys)
    ends = pa.array([], pa.uint32())
    if len(keys) - len(runs.values) > _MAX_REPEATED * len(keys):
        keys, ends = runs.values, pc.cast(runs.run_ends, pa.uint32())
    writer.add(f"{name}.key", keys)
    writer.add(f"{name}.end", ends)
    writer.add(f"{name}.row", pc.cast(rows, pa.uint32()))


class Postings:
    """Postings of a segment, open for reading."""

    def __init__(self, file: SegmentFile, name: str) -> None:
        """Take the arrays of an open segment."""
        self._keys, self._ends = file.numbers(f"{name}.key"), file.numbers(f"{name}.end")
        self._rows = file.numbers(f"{name}.row")

    def find(self, key: int) -> Sequence[int]:
        """Return the rows of a key, in order."""
        at = bisect_left(self._keys, key)
        if at == len(self._keys) or self._keys[at] != key:
            return ()
        if not len(self._ends):
            return self._rows[at : bisect_right(self._keys, key, at)]
        return self._rows[self._ends[at - 1] if at else 0 : self._ends[at]]

    def has(self, key: int) -> bool:
        """Whether a key has rows."""
        at = bisect_left(self._keys, key)
        return at < len(self._keys) and self._keys[at] == key

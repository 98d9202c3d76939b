"""The trace of each transaction, and the transactions of each trace.

``root`` has for each row the row of the trace's first transaction; or, where that is not of this
run, a place in ``other`` (32-byte hashes), counted down from the highest number; or ``NO_TRACE``.
``trace`` are postings by trace id. All this may change when a range in the middle is filled in:
the log says by which files the run is right.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lake.lookup.postings import as_arrow, cut_hash, write_postings
from lake.lookup.reading import NO_TRACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lake.lookup.runfile import RunWriter

_HASH_BYTES = 32


class TracesBuilder:
    """Collects the trace id of each transaction, in the order of rows."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[bytes, bytes] = {}
        self._ids, self._hashes = bytearray(), bytearray()

    def learn(self, hashes: Sequence[bytes], trace_ids: Sequence[bytes]) -> None:
        """Take the trace ids of the transactions that are added next."""
        self._known = dict(zip(hashes, trace_ids, strict=True))

    def add(self, tx_hash: bytes) -> None:
        """Add the next row; zeroes stand for a trace that is not known."""
        self._ids += self._known.get(tx_hash, bytes(_HASH_BYTES))
        self._hashes += tx_hash

    def write(self, writer: RunWriter, by_hash: pa.Table, lts: pa.Array) -> None:
        """Write the arrays; ``by_hash`` has ``key`` and ``row`` of each transaction."""
        keys = array("Q", (cut_hash(self._id(row)) for row in range(len(by_hash))))
        trace_keys = as_arrow(keys)
        places = pc.index_in(trace_keys, value_set=by_hash["key"].combine_chunks()).to_pylist()
        other = bytearray()
        numbers: dict[bytes, int] = {bytes(_HASH_BYTES): NO_TRACE}
        roots = array("I")
        for row, place in enumerate(places):
            trace_id = self._id(row)
            if place is not None and self._hash(place) == trace_id:
                roots.append(place)
                continue
            if trace_id not in numbers:
                numbers[trace_id] = NO_TRACE - len(numbers)
                other += trace_id
            roots.append(numbers[trace_id])
        writer.add("root", "I", roots)
        writer.add("other", "B", other)
        table = pa.table({"key": trace_keys, "lt": lts, "row": by_hash["row"]})
        known = pc.not_equal(as_arrow(roots), NO_TRACE)
        write_postings(writer, "trace", table.filter(known))

    def _id(self, row: int) -> bytes:
        return bytes(self._ids[row * _HASH_BYTES : (row + 1) * _HASH_BYTES])

    def _hash(self, row: int) -> bytes:
        return bytes(self._hashes[row * _HASH_BYTES : (row + 1) * _HASH_BYTES])

"""The trace of each transaction, the transactions of each trace, and the complete traces.

``root`` has for each row the row of the trace's first transaction, and ``parent`` that of the
transaction which sent the in message, counted from 1; or, where that is not of this segment, the
number of rows and a place in ``other`` (32-byte hashes), counted from 1 as well; or 0. ``trace``
are postings by trace id. All this may change when a range in the middle is filled in: the log names
the files by which the segment is right. ``ended`` are the complete traces that end in the segment,
which never change: keys, places in ``ended.data``, and there each as module ``shape`` writes it.
"""

from __future__ import annotations

from array import array
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from tonlake.lake.file.values import iter_tuples, list_values
from tonlake.lake.index.segment.postings import (
    as_arrow,
    count_cut_bits,
    cut_hash,
    pick_rows,
    write_postings,
)
from tonlake.lake.index.segment.record import TRACE
from tonlake.lake.schema import TRACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tonlake.lake.index.segment.file import SegmentWriter
    from tonlake.lake.index.segment.shape import RecordEncoder

_HASH_BYTES = 32
_NONE = bytes(_HASH_BYTES)


class TracesBuilder:
    """Collects trace and parent of each transaction, in the order of rows, and complete traces."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[bytes, tuple[bytes, bytes | None]] = {}
        self._ids, self._hashes, self._parents = bytearray(), bytearray(), bytearray()
        self._keys, self._lts = array("Q"), array("q")

    def learn(self, rows: pa.Table) -> None:
        """Take rows of ``transaction_traces``: of the transactions that are added next."""
        pairs = iter_tuples(rows, ("trace_id", "parent_hash"))
        self._known = dict(zip(list_values(rows["hash"]), pairs, strict=True))

    def add(self, tx_hash: bytes) -> None:
        """Add the next row; zeroes stand for what is not known."""
        trace_id, parent = self._known.get(tx_hash, (_NONE, None))
        self._ids += trace_id
        self._parents += parent or _NONE
        self._hashes += tx_hash

    def write(self, writer: SegmentWriter, keys: array[int], lts: array[int]) -> None:
        """Write the arrays about transactions; ``keys`` are of their hashes."""
        self._keys, self._lts = keys, lts
        numbers: dict[bytes, int] = {_NONE: 0}
        trace_keys, roots = self._find_rows(self._ids, numbers)
        _, parents = self._find_rows(self._parents, numbers)
        writer.add_numbers("root", roots)
        writer.add_numbers("parent", parents)
        writer.add("other", b"".join(list(numbers)[1:]))
        every = {"key": trace_keys, "lt": lts, "row": array("I", range(len(lts)))}
        known = pick_rows(every, [root != 0 for root in roots])
        write_postings(writer, "trace", known, hashed=True)

    def _find_rows(
        self, hashes: bytearray, numbers: dict[bytes, int]
    ) -> tuple[array[int], array[int]]:
        """Return keys and rows of hashes; those of other segments get numbers."""
        count = len(hashes) // _HASH_BYTES
        keys = array("Q", (cut_hash(_at(hashes, row)) for row in range(count)))
        found = array("q")
        places = pc.index_in(as_arrow(keys), value_set=as_arrow(self._keys)).to_pylist()
        for row, place in enumerate(places):
            tx_hash = _at(hashes, row)
            if place is not None and _at(self._hashes, place) == tx_hash:
                found.append(place + 1)
            else:
                found.append(numbers.setdefault(tx_hash, len(self._keys) + len(numbers)))
        return keys, found

    def write_ended(
        self, writer: SegmentWriter, encoder: RecordEncoder, traces: pa.Table, times: array[int]
    ) -> None:
        """Write the complete traces that end in the segment; ``times`` are in unix seconds."""
        lts = self._lts
        rows = sorted(iter_tuples(traces, ("trace_id", *TRACE.columns)), key=itemgetter(0))
        ids = bytearray().join(row[0] for row in rows)
        trace_keys, found = self._find_rows(ids, {_NONE: 0})
        places, data = array("q", [0]), bytearray()
        for (trace_id, *values), number in zip(rows, found, strict=True):
            row = number - 1
            root = (row, lts[row], times[row]) if 0 <= row < len(lts) else None
            data += encoder.encode_trace(trace_id, root, values)
            places.append(len(data))
        cut_bits = count_cut_bits(len(rows))
        cut = array("q", (key >> cut_bits for key in trace_keys))
        writer.add_numbers("ended.key", cut, cut_bits)
        writer.add_numbers("ended.at", places)
        writer.add("ended.data", data)


def _at(hashes: bytearray | memoryview, row: int) -> bytes:
    return bytes(hashes[row * _HASH_BYTES : (row + 1) * _HASH_BYTES])


_ARRAYS = ("hash", "root", "parent", "other")


class SegmentTraces:
    """The traces of an open segment."""

    def __init__(self, arrays: Mapping[str, Any], source: Any) -> None:  # noqa: ANN401 - see below
        """Take the arrays of an open segment, and what ``open_source`` made of them.

        Raises:
            KeyError: it lacks one.
        """
        self._arrays = {name: arrays[name] for name in _ARRAYS}
        self._keys, self._source = arrays["ended.key"], source

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row; None where it is not known."""
        return self._hash("root", row)

    def parent_of(self, row: int) -> bytes | None:
        """Return the hash of the transaction that sent a row's in message, where indexed."""
        return self._hash("parent", row)

    def find_ended(self, trace_id: bytes) -> dict[str, Any] | None:
        """Return the row of a complete trace that ends in the segment, or None."""
        at = self._keys.find(cut_hash(trace_id))
        while 0 <= at < len(self._keys):
            row = self._source.read_traces([at])[0]
            if row.trace_id == trace_id:
                return {name: getattr(row, name) for name in TRACES.names}
            if row.trace_id > trace_id:
                break
            at += 1
        return None

    def _hash(self, name: str, row: int) -> bytes | None:
        found: int = self._arrays[name][row] - 1
        if found < 0:
            return None
        rows = len(self._arrays[name])
        hashes, at = ("hash", found) if found < rows else ("other", found - rows)
        return _at(self._arrays[hashes], at)

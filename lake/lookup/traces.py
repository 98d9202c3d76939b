"""The trace of each transaction, the transactions of each trace, and the complete traces.

``root`` has for each row the row of the trace's first transaction, and ``parent`` that of the
transaction which sent the in message; or, where that is not of this run, a place in ``other``
(32-byte hashes), counted down from the highest number; or ``NO_TRACE``. ``trace`` are postings by
trace id. All this may change when a range in the middle is filled in: the log says by which files
the run is right. ``ended`` are the complete traces that end in the run, which never change: keys,
places in ``ended.data``, and there the columns of each as MessagePack.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.compute as pc

from lake.lookup.postings import as_arrow, cut_hash, pick_rows, write_postings
from lake.lookup.reading import NO_TRACE
from lake.schema import TRACES
from lake.values import iter_tuples, list_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from lake.lookup.runfile import RunWriter

_HASH_BYTES = 32
_NONE = bytes(_HASH_BYTES)
_TRACE_ID = TRACES.names.index("trace_id")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class TracesBuilder:
    """Collects trace and parent of each transaction, in the order of rows, and complete traces."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[bytes, tuple[bytes, bytes | None]] = {}
        self._ids, self._hashes, self._parents = bytearray(), bytearray(), bytearray()
        self._ended: list[pa.Table] = []

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

    def add_ended(self, traces: pa.Table) -> None:
        """Add complete traces that end in the run."""
        self._ended.append(traces)

    def write(self, writer: RunWriter, keys: array[int], lts: array[int]) -> None:
        """Write the arrays, given the key of each transaction's hash, and its logical time."""
        numbers: dict[bytes, int] = {_NONE: NO_TRACE}
        trace_keys, roots = self._find_rows(self._ids, keys, numbers)
        _, parents = self._find_rows(self._parents, keys, numbers)
        writer.add("root", "I", roots)
        writer.add("parent", "I", parents)
        writer.add("other", "B", b"".join(list(numbers)[1:]))
        every = {"key": trace_keys, "lt": lts, "row": array("I", range(len(lts)))}
        known = pick_rows(every, [root != NO_TRACE for root in roots])
        write_postings(writer, "trace", known)
        self._write_ended(writer)

    def _find_rows(
        self, hashes: bytearray, rows: array[int], numbers: dict[bytes, int]
    ) -> tuple[array[int], array[int]]:
        """Return keys and rows of hashes; those of other runs get numbers."""
        count = len(hashes) // _HASH_BYTES
        keys = array("Q", (cut_hash(_at(hashes, row)) for row in range(count)))
        found = array("I")
        places = pc.index_in(as_arrow(keys), value_set=as_arrow(rows)).to_pylist()
        for row, place in enumerate(places):
            tx_hash = _at(hashes, row)
            if place is not None and _at(self._hashes, place) == tx_hash:
                found.append(place)
            else:
                found.append(numbers.setdefault(tx_hash, NO_TRACE - len(numbers)))
        return keys, found

    def _write_ended(self, writer: RunWriter) -> None:
        rows: list[tuple[Any, ...]] = []
        for table in self._ended:
            rows += iter_tuples(table, TRACES.names)
        rows.sort(key=itemgetter(_TRACE_ID))
        places, data = array("Q", [0]), bytearray()
        for row in rows:
            data += _encode(row)
            places.append(len(data))
        writer.add("ended.key", "Q", array("Q", (cut_hash(row[_TRACE_ID]) for row in rows)))
        writer.add("ended.at", "Q", places)
        writer.add("ended.data", "B", data)


def _at(hashes: bytearray, row: int) -> bytes:
    return bytes(hashes[row * _HASH_BYTES : (row + 1) * _HASH_BYTES])


_ARRAYS = ("hash", "root", "parent", "other", "ended.at", "ended.data")


class RunTraces:
    """The traces of an open run."""

    def __init__(self, arrays: Mapping[str, memoryview]) -> None:
        """Take the arrays of an open run.

        Raises:
            KeyError: it lacks one.
        """
        self._arrays = {name: arrays[name] for name in _ARRAYS}
        self._keys = arrays["ended.key"]

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row; None where it is not known."""
        return self._hash("root", row)

    def parent_of(self, row: int) -> bytes | None:
        """Return the hash of the transaction that sent a row's in message, where indexed."""
        return self._hash("parent", row)

    def find_ended(self, trace_id: bytes) -> dict[str, Any] | None:
        """Return the row of a complete trace that ends in the run, or None."""
        key = cut_hash(trace_id)
        at = bisect_left(self._keys, key)
        while at < len(self._keys) and self._keys[at] == key:
            start, end = self._arrays["ended.at"][at : at + 2]
            row = dict(
                zip(TRACES.names, _decode(self._arrays["ended.data"][start:end]), strict=True)
            )
            if row["trace_id"] == trace_id:
                return row
            at += 1
        return None

    def _hash(self, name: str, row: int) -> bytes | None:
        found: int = self._arrays[name][row]
        if found == NO_TRACE:
            return None
        if found < len(self._arrays[name]):
            hashes = self._arrays["hash"]
        else:
            hashes, found = self._arrays["other"], NO_TRACE - 1 - found
        return bytes(hashes[found * _HASH_BYTES : (found + 1) * _HASH_BYTES])

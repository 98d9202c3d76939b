"""The trace of each transaction, the transactions of each trace, and the complete traces.

``root`` has for each row the row of the trace's first transaction, and ``parent`` that of the
transaction which sent the in message, counted from 1; or, where that is not of this segment, the
number of rows and a place in ``other`` (32-byte hashes), counted from 1 as well; or 0. ``trace``
are postings by trace id. All this may change when a range in the middle is filled in: the log names
the files by which the segment is right. ``ended`` are the complete traces that end in the segment,
which never change: keys, places in ``ended.data``, and there each as module ``shape`` writes it.
``ended.longest`` are the logical time and the unix seconds that one of them takes at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HASH_BYTES = 32


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
        self.longest: tuple[int, ...] = tuple(arrays["ended.longest"])

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row; None where it is not known."""
        return self._hash("root", row)

    def choose(self, rows: Iterable[int], trace_id: bytes) -> list[int]:
        """Return those of some rows, most of them of one trace, that are of a trace."""
        roots, fits = self._arrays["root"], dict[int, bool]()
        chosen = []
        for row in rows:
            root = roots[row]
            if root not in fits:
                fits[root] = self.trace_of(row) == trace_id
            if fits[root]:
                chosen.append(row)
        return chosen

    def parent_of(self, row: int) -> bytes | None:
        """Return the hash of the transaction that sent a row's in message, where indexed."""
        return self._hash("parent", row)

    def is_sent(self, row: int) -> bool:
        """Return whether the transaction that sent a row's in message is known."""
        return bool(self._arrays["parent"][row])

    def list_consumed(self, rows: range, senders: range) -> list[int]:
        """Return those of consecutive rows whose in message rows of an account may have sent.

        Both are ranges of rows. What is sent from another segment is left out; a row whose trace
        is not known is not.
        """
        found: list[int] = self._arrays["parent"].list_between(
            rows.start, rows.stop, senders.start + 1, senders.stop + 1
        )
        unknown = self._arrays["root"].list_between(rows.start, rows.stop, 0, 1)
        return sorted({*found, *unknown}) if unknown else found

    def find_ended(self, trace_id: bytes) -> Any | None:  # noqa: ANN401 - a row
        """Return the row of a complete trace that ends in the segment, or None."""
        at = self._keys.find(cut_hash(trace_id))
        while 0 <= at < len(self._keys):
            row = self._source.read_traces([at])[0]
            if row.trace_id == trace_id:
                return row
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

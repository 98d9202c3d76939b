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

if TYPE_CHECKING:
    from collections.abc import Mapping


class SegmentTraces:
    """The traces of an open segment."""

    def __init__(self, arrays: Mapping[str, Any], source: Any) -> None:  # noqa: ANN401 - see below
        """Take the arrays of an open segment, and what ``open_source`` made of them.

        Raises:
            KeyError: it lacks one.
        """
        self._roots, self._parents = arrays["root"], arrays["parent"]
        self._keys, self._source = arrays["ended.key"], source
        self.longest: tuple[int, ...] = tuple(arrays["ended.longest"])

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row; None where it is not known."""
        return self.traces_of([row])[0]

    def traces_of(self, rows: list[int]) -> list[bytes | None]:
        """Return the trace ids of rows."""
        found: list[bytes | None] = self._source.read_linked(self._roots.list_at(rows))
        return found

    def parents_of(self, rows: list[int]) -> list[bytes | None]:
        """Return the hashes of the transactions that sent rows' in messages, where indexed."""
        found: list[bytes | None] = self._source.read_linked(self._parents.list_at(rows))
        return found

    def is_sent(self, row: int) -> bool:
        """Return whether the transaction that sent a row's in message is known."""
        return bool(self._parents[row])

    def list_consumed(self, rows: range, senders: range) -> list[int]:
        """Return those of consecutive rows whose in message rows of an account may have sent.

        Both are ranges of rows. What is sent from another segment is left out; a row whose trace
        is not known is not.
        """
        found: list[int] = self._parents.list_between(
            rows.start, rows.stop, senders.start + 1, senders.stop + 1
        )
        unknown = self._roots.list_between(rows.start, rows.stop, 0, 1)
        return sorted({*found, *unknown}) if unknown else found

    def find_ended(self, trace_ids: list[bytes]) -> dict[bytes, Any]:
        """Return the rows of those of some traces that are complete and end in the segment."""
        places = self._keys.find_hashes(trace_ids)
        rows = iter(self._source.read_traces([at for at in places if at >= 0]))
        found = {}
        for trace_id, at in zip(trace_ids, places, strict=True):
            row = next(rows) if at >= 0 else None
            if row is not None and row.trace_id < trace_id:  # it begins alike
                row = self._find_behind(trace_id, at)
            if row is not None and row.trace_id == trace_id:
                found[trace_id] = row
        return found

    def _find_behind(self, trace_id: bytes, place: int) -> Any | None:  # noqa: ANN401 - a row
        for at in range(place + 1, len(self._keys)):
            row = self._source.read_traces([at])[0]
            if row.trace_id >= trace_id:
                return row
        return None

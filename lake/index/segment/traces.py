"""The trace of each transaction, the transactions of each trace, and the complete traces.

``root`` has for each row the row of the trace's root transaction, and ``parent`` that of the
transaction that sent the inbound message, counted from 1. If that is not in this segment, the value
is the number of rows plus an index in ``other`` (32-byte hashes), also counted from 1; 0 means
unknown. ``trace`` are postings by trace id. All of this may change when a gap is filled: the log
records for which files the segment is valid. ``ended`` are the complete traces that end in the
segment, which never change: keys, and offsets in ``ended.data``, which has each trace as encoded by
module ``shape``. ``ended.longest`` has their longest durations in logical time and Unix seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class SegmentTraces:
    """The traces of an open segment."""

    def __init__(self, arrays: Mapping[str, Any], source: Any) -> None:  # noqa: ANN401 - see below
        """Take the arrays of an open segment, and the reader from ``open_source``.

        Raises:
            KeyError: an array is missing.
        """
        self._roots, self._parents = arrays["root"], arrays["parent"]
        self._keys, self._source = arrays["ended.key"], source
        self.longest: tuple[int, ...] = tuple(arrays["ended.longest"])

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row; None if unknown."""
        return self.traces_of([row])[0]

    def traces_of(self, rows: list[int]) -> list[bytes | None]:
        """Return the trace ids of rows."""
        found: list[bytes | None] = self._source.read_linked(self._roots.list_at(rows))
        return found

    def parents_of(self, rows: list[int]) -> list[bytes | None]:
        """Return the hashes of the senders of rows' inbound messages; None if unknown."""
        found: list[bytes | None] = self._source.read_linked(self._parents.list_at(rows))
        return found

    def is_sent(self, row: int) -> bool:
        """Whether the transaction that sent a row's inbound message is known."""
        return bool(self._parents[row])

    def list_consumed(self, rows: range, senders: range) -> list[int]:
        """Return the rows whose inbound message may have been sent by one of the ``senders``.

        Both are ranges of rows. Rows whose message was sent from another segment are left out; rows
        of unknown traces are included.
        """
        found: list[int] = self._parents.list_between(
            rows.start, rows.stop, senders.start + 1, senders.stop + 1
        )
        unknown = self._roots.list_between(rows.start, rows.stop, 0, 1)
        return sorted({*found, *unknown}) if unknown else found

    def find_ended(self, trace_ids: list[bytes]) -> dict[bytes, Any]:
        """Return the rows of the traces that are complete and end in the segment, by id."""
        places = self._keys.find_hashes(trace_ids)
        rows = iter(self._source.read_traces([at for at in places if at >= 0]))
        found = {}
        for trace_id, at in zip(trace_ids, places, strict=True):
            row = next(rows) if at >= 0 else None
            if row is not None and row.trace_id < trace_id:  # another id with the same prefix
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

"""Pages of messages by filters: those of an account at one end.

The transactions of an account ascend, and so do the messages that they made. Those that they
consumed nearly do: a segment knows the longest that any message in it waited.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page.messages import (
    FEWEST,
    Budget,
    cut_places,
    read_places,
    read_until,
)
from tonlake.lake.index.segment.ends import NO_LT
from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.page.merge import Listed
    from tonlake.lake.index.page.messages import Wanted
    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Segment

MOST_SENT = 1 << 16
"""More logical time than lies between a transaction and its last message."""


def list_of_account(
    segments: Sequence[Segment],
    lists: Sequence[Listed],
    account: AccountId,
    wanted: Wanted,
    *,
    is_source: bool,
    sender: AccountId | None = None,
) -> list[Any]:
    """Return the first messages that an account sent, or that were sent to it, either end of each.

    ``lists`` are the transactions of the account; with ``sender``, those are enough that consumed
    what the sender sent from the same segment.

    Raises:
        Declined: too many records have to be read.
    """
    budget = Budget()

    def list_external(part: Wanted) -> list[Any]:
        return [] if is_source else _list_external(segments, account, part, budget)

    def list_created(part: Wanted) -> list[Any]:
        found: dict[bytes, Any] = {}
        for segment in segments:
            found |= _read_alone(segment, account, part, budget, is_source=is_source)
            if sender is not None:
                found |= _read_alone(segment, sender, part, budget, is_source=True)
        rows = _Rows(lists, part, is_source=is_source)
        for lines, edge in rows.read(budget):
            found |= part.within(lines)
            moments = (part.order(line)[0] for line in found.values())
            if part.descending:
                settled = sum(moment > edge for moment in moments)
            else:
                settled = sum(moment < edge for moment in moments)
            if settled >= part.most:
                break
        return part.sort(found)[: part.most]

    return wanted.fill(list_external, list_created)


class _Rows:
    """The transactions of an account that may have made or consumed messages of a span."""

    def __init__(self, lists: Sequence[Listed], wanted: Wanted, *, is_source: bool) -> None:
        self._descending, self._by_time = wanted.descending, wanted.by_time
        self._direction = "out" if is_source else "in"
        self._is_exact = is_source and not wanted.by_time
        self._wait = 0
        self._lists = []
        for listed in lists[::-1] if wanted.descending else lists:
            segment = listed.segment
            low, high = wanted.low, wanted.high
            if self._is_exact:
                low -= MOST_SENT
            if not is_source:
                wait = segment.wait_s if wanted.by_time else segment.wait_lt
                self._wait = max(self._wait, wait)
                high += wait
            cut = listed.cut(max(low, 0), min(high, NO_LT), by_time=wanted.by_time)
            if cut.size:
                self._lists.append(cut)

    def read(self, budget: Budget) -> Iterator[tuple[list[Any], int]]:
        """Yield messages, with the moment that none of the later ones is before in the order."""
        size = FEWEST
        places = ((listed.segment, row) for listed in self._lists for row in self._order(listed))
        chunk = list(islice(places, size))
        while chunk:
            budget.spend(len(chunk))
            size *= 2
            after = list(islice(places, size))
            yield self._read(chunk), self._find_edge(chunk[-1], after)
            chunk = after

    def _order(self, listed: Listed) -> Sequence[int]:
        rows = listed.rows[listed.start : listed.end]
        return rows[::-1] if self._descending else rows

    def _read(self, chunk: Sequence[tuple[Segment, int]]) -> list[Any]:
        by_segment: dict[Segment, list[int]] = {}
        for segment, row in chunk:
            by_segment.setdefault(segment, []).append(row)
        return [
            line
            for segment, rows in by_segment.items()
            for record in segment.read_records(rows)
            for line in record.messages
            if line.direction == self._direction
        ]

    def _find_edge(self, last: tuple[Segment, int], after: Sequence[tuple[Segment, int]]) -> int:
        """Return where messages that were not read may begin."""
        if not after:
            return -1 if self._descending else NO_LT
        segment, row = last if self._is_exact and self._descending else after[0]
        edge: int = segment.now[row] if self._by_time else segment.lt[row]
        if self._descending:
            return edge - 1 if self._is_exact else edge
        return edge - self._wait


def _read_alone(
    segment: Segment, account: AccountId, wanted: Wanted, budget: Budget, *, is_source: bool
) -> dict[bytes, Any]:
    """Return messages of an account that have one end in a segment, and not at the account."""
    postings = segment.alone_from if is_source else segment.alone_to
    start, end = postings.find(cut_hash(account[1]))
    if start < end and not is_source:
        end = find_external(segment, postings, start, end)
    places = range(start, end)
    if wanted.by_time:
        return wanted.within(read_places(segment, postings, places, budget))
    places = cut_places(segment, postings, places, wanted)
    return read_until(segment, postings, places, wanted, budget)


def find_external(segment: Segment, postings: Postings, start: int, end: int) -> int:
    """Return where the messages without a creation begin, which stand after all others."""

    def is_external(at: int) -> int:
        (line,) = segment.read_lines([(postings.rows[at], postings.places[at])])
        return int(line.created_lt is None)

    return bisect_left(range(end), 1, start, end, key=is_external)


def _list_external(
    segments: Sequence[Segment], account: AccountId, wanted: Wanted, budget: Budget
) -> list[Any]:
    """Return the first messages to an account that have no creation; they stand by hash."""
    found: dict[bytes, Any] = {}
    for segment in segments:
        start, end = segment.alone_to.find(cut_hash(account[1]))
        if start < end:
            start = find_external(segment, segment.alone_to, start, end)
        found |= read_until(segment, segment.alone_to, range(start, end), wanted, budget)
    return wanted.sort(found)[: wanted.most]

"""Pages of the messages of an account, at one end.

The transactions of an account ascend, and so do the messages that they sent. Messages that they
consumed nearly do: a segment knows the longest time that any message in it waited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page.messages import (
    MIN_READ,
    Budget,
    count_next,
    cut_created,
    find_external,
    read_created,
    read_places,
    read_until,
)
from tonlake.lake.index.segment.ends import NO_LT
from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.page.merge import Listed
    from tonlake.lake.index.page.messages import PageRequest
    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Segment

SCANNED = 256
"""Places of postings that can be compared in the time it takes to read one record, about."""

_MIN_SCANNED = 1 << 14
"""Places of postings that are compared in the first step; each step doubles it."""

MAX_SENT = 1 << 16
"""Upper bound of the logical time between a transaction and its last message."""


def list_of_account(
    segments: Sequence[Segment],
    lists: Sequence[Listed],
    account: AccountId,
    request: PageRequest,
    *,
    is_source: bool,
    sender: AccountId | None = None,
    key: tuple[str, int] | None = None,
) -> list[Any]:
    """Return the first messages sent by an account or to it, one end of each.

    ``lists`` are the transactions of the account; with ``sender``, those that consumed messages
    of the sender from the same segment suffice. With ``key``, the name of postings and a key, only
    the messages of that key are read.

    Raises:
        Declined: too many records would have to be read.
    """
    budget = Budget()

    def list_external(part: PageRequest) -> list[Any]:
        return [] if is_source else _list_external(segments, account, part, budget)

    def list_created(part: PageRequest) -> list[Any]:
        found: dict[bytes, Any] = {}
        for segment in segments:
            found |= _read_alone(segment, account, part, budget, is_source=is_source)
            if sender is not None:
                found |= _read_alone(segment, sender, part, budget, is_source=True)
        if key is not None:
            for listed in lists:
                found |= _read_keyed(listed, *key, part, budget)
            return part.sort(found)[: part.most]
        rows = _Rows(lists, part, is_source=is_source)
        settled = 0
        while settled < part.most and rows.left:
            lines, edge = rows.read(settled, budget)
            found |= part.unite(lines)
            settled = part.count_settled(found, edge)
        return part.sort(found)[: part.most]

    return request.fill(list_external, list_created)


class _Rows:
    """The transactions of an account that may have sent or consumed messages of a span."""

    def __init__(self, lists: Sequence[Listed], request: PageRequest, *, is_source: bool) -> None:
        self._request, self._read = request, 0
        direction = "out" if is_source else "in"
        self._filters = (*request.of_span, ("direction", direction, direction))
        self._is_exact = is_source and not request.by_time
        self._wait = 0
        self._lists: list[Listed] = []
        for listed in lists[::-1] if request.descending else lists:
            segment = listed.segment
            low, high = request.low, request.high
            if self._is_exact:
                low -= MAX_SENT
            if not is_source:
                wait = segment.wait_s if request.by_time else segment.wait_lt
                self._wait = max(self._wait, wait)
                high += wait
            cut = listed.cut(max(low, 0), min(high, NO_LT), by_time=request.by_time)
            if cut.size:
                self._lists.append(cut)

    @property
    def left(self) -> bool:
        """Whether unread transactions are left."""
        return bool(self._lists)

    def read(self, settled: int, budget: Budget) -> tuple[list[Any], int]:
        """Return messages, and a moment that bounds those not yet read.

        ``settled`` messages already have their final position on the page.
        """
        most = count_next(self._request.most, settled, self._read)
        found: list[Any] = []
        while self._lists and most > 0:
            listed = self._lists.pop(0)
            if self._request.descending:
                start = max(listed.start, listed.end - most)
                chunk, rest = listed._replace(start=start), listed._replace(end=start)
                last = listed.rows[start]
            else:
                end = min(listed.end, listed.start + most)
                chunk, rest = listed._replace(end=end), listed._replace(start=end)
                last = listed.rows[end - 1]
            budget.spend(chunk.size)
            rows = listed.rows[chunk.start : chunk.end]
            found += listed.segment.choose_lines(rows, self._filters)
            most, self._read = most - chunk.size, self._read + chunk.size
            if rest.size:
                self._lists.insert(0, rest)
        return found, self._find_edge(listed.segment, last)

    def _find_edge(self, segment: Segment, last: int) -> int:
        """Return the bound of unread messages' moments; ``last`` is the last row read."""
        descending = self._request.descending
        if not self._lists:
            return -1 if descending else NO_LT
        if not (self._is_exact and descending):
            after = self._lists[0]
            segment, last = after.segment, after.rows[after.end - 1 if descending else after.start]
        edge: int = segment.now[last] if self._request.by_time else segment.lt[last]
        if descending:
            return edge - 1 if self._is_exact else edge
        return edge - self._wait


def _read_keyed(
    listed: Listed, name: str, key: int, request: PageRequest, budget: Budget
) -> dict[bytes, Any]:
    """Return the first messages of a key that an account consumed, from its rows in a segment."""
    segment = listed.segment
    postings: Postings = getattr(segment, name)
    left = range(*postings.find(key))
    found: dict[bytes, Any] = {}
    size = _MIN_SCANNED
    while left and len(found) < request.most:
        if request.descending:
            chunk, left = left[-size:], left[:-size]
        else:
            chunk, left = left[:size], left[size:]
        places = postings.rows.list_between(chunk.start, chunk.stop, listed.start, listed.end)
        if len(places) > MIN_READ:
            places = cut_created(segment, postings, places, request)
        part = request._replace(most=request.most - len(found))
        found |= read_until(segment, postings, places, request.of_span, part, budget)
        size *= 2
    return found


def _read_alone(
    segment: Segment, account: AccountId, request: PageRequest, budget: Budget, *, is_source: bool
) -> dict[bytes, Any]:
    """Return messages with only one end in a segment, which is not at the account."""
    postings = segment.alone_from if is_source else segment.alone_to
    start, end = postings.find(cut_hash(account[1]))
    if start < end and not is_source:
        end = find_external(segment, postings, start, end)
    places = range(start, end)
    if request.by_time:
        return request.unite(read_places(segment, postings, places, request.of_span, budget))
    return read_created(segment, postings, places, request, budget)


def _list_external(
    segments: Sequence[Segment], account: AccountId, request: PageRequest, budget: Budget
) -> list[Any]:
    """Return the first messages to an account without a creation time; they are sorted by hash."""
    found: dict[bytes, Any] = {}
    for segment in segments:
        start, end = segment.alone_to.find(cut_hash(account[1]))
        if start < end:
            start = find_external(segment, segment.alone_to, start, end)
        places, filters = range(start, end), request.of_external
        found |= read_until(segment, segment.alone_to, places, filters, request, budget)
    return request.sort(found)[: request.most]

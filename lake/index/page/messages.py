"""Pages of messages by filters: of an opcode, of a body, or external ones.

Messages are sorted by moment, creation in logical time or in Unix seconds, then by hash. External
messages, which have no creation time, come last.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.filters import EXTERNAL
from tonlake.lake.index.segment.ends import NO_LT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Filter, Segment

MAX_READ = 10_000
"""Most records read for a page; SQL answers if more are needed."""

MIN_READ = 16
"""Records in the first read."""


class PageRequest(NamedTuple):
    """A requested page: remaining filters, range of moments (both ends included), and order.

    ``keep`` takes one end of each message that passes the filters, and returns an end in the
    requested direction, if there is one. ``created`` includes messages with a creation time,
    ``external`` those without one. ``most`` is the number of messages up to the end of the page.
    """

    filters: tuple[Filter, ...]
    keep: Callable[[list[Any]], list[Any]]
    by_time: bool
    low: int
    high: int
    created: bool
    external: bool
    descending: bool
    most: int

    @property
    def of_span(self) -> tuple[Filter, ...]:
        """The filters, and that a message was created within the range."""
        column = "created_at" if self.by_time else "created_lt"
        return (*self.filters, (column, self.low, self.high))

    @property
    def of_external(self) -> tuple[Filter, ...]:
        """The filters, and that a message has no creation time."""
        return (*self.filters, EXTERNAL)

    def moment(self, line: Any) -> int:  # noqa: ANN401 - a message
        """Return the moment of a message's creation; messages without one come last."""
        moment = line.created_at if self.by_time else line.created_lt
        return NO_LT if moment is None else moment

    def order(self, line: Any) -> tuple[int, bytes]:  # noqa: ANN401 - a message
        """Return the sort key of a message."""
        return self.moment(line), line.msg_hash

    def sort(self, found: dict[bytes, Any]) -> list[Any]:
        """Return messages in order."""
        return sorted(found.values(), key=self.order, reverse=self.descending)

    def unite(self, lines: Iterable[Any]) -> dict[bytes, Any]:
        """Return the messages to keep by hash, one end of each."""
        found = {line.msg_hash: line for line in lines}
        return {line.msg_hash: line for line in self.keep(list(found.values()))}

    def count_settled(self, found: dict[bytes, Any], edge: int) -> int:
        """Return how many messages come before all with a moment at ``edge`` or beyond."""
        moments = map(self.moment, found.values())
        if self.descending:
            return sum(moment > edge for moment in moments)
        return sum(moment < edge for moment in moments)

    def fill(
        self,
        external: Callable[[PageRequest], list[Any]],
        created: Callable[[PageRequest], list[Any]],
    ) -> list[Any]:
        """Return messages without and with a creation time, as many as requested, in order."""
        parts = [(self.external, external), (self.created, created)]
        page: list[Any] = []
        for is_wanted, part in parts if self.descending else parts[::-1]:
            if is_wanted and len(page) < self.most:
                page += part(self._replace(most=self.most - len(page)))
        return page


def count_next(most: int, settled: int, read: int) -> int:
    """Return how many rows to read next, if ``settled`` of ``most`` came from those so far."""
    if not settled:
        return max(MIN_READ, most, 2 * read)
    return min(2 * read, MIN_READ + (most - settled) * read // settled)


class Budget:
    """The number of records that may still be read."""

    def __init__(self, most: int = MAX_READ) -> None:
        """Start with ``most``."""
        self._left = most

    def spend(self, count: int) -> None:
        """Subtract ``count``.

        Raises:
            Declined: fewer are left.
        """
        self._left -= count
        if self._left < 0:
            raise Declined


def read_places(
    segment: Segment,
    postings: Postings,
    places: Sequence[int],
    filters: Sequence[Filter],
    budget: Budget,
) -> list[Any]:
    """Return the messages at places of postings that pass the filters.

    Raises:
        Declined: there are too many.
    """
    if not places:
        return []
    budget.spend(len(places))
    return segment.choose_lines(
        [(postings.rows[at], postings.places[at]) for at in places], filters
    )


def read_until(
    segment: Segment,
    postings: Postings,
    places: Sequence[int],
    filters: Sequence[Filter],
    request: PageRequest,
    budget: Budget,
) -> dict[bytes, Any]:
    """Return the first messages, at ascending places, that pass the filters, by hash."""
    found: dict[bytes, Any] = {}
    ordered = places[::-1] if request.descending else places
    start, size = 0, max(MIN_READ, request.most)
    while start < len(ordered) and len(found) < request.most:
        lines = read_places(segment, postings, ordered[start : start + size], filters, budget)
        found |= request.unite(lines)
        start += size
        size = count_next(request.most, len(found), start)
    return found


def list_external(segments: Sequence[Segment], request: PageRequest) -> list[Any]:
    """Return the first of all messages without a creation time; they are sorted by hash.

    Raises:
        Declined: too many records would have to be read.
    """
    budget = Budget()
    found: dict[bytes, Any] = {}
    for segment in segments:
        kept: dict[bytes, Any] = {}
        for chunk in segment.message.list_chunks(MIN_READ * 4, descending=request.descending):
            # An external message has no sending transaction. It is found at its own hash.
            rows = {row for row in chunk.values() if not segment.traces.is_sent(row)}
            budget.spend(len(rows))
            hashes = segment.message.bound_hashes(min(chunk), max(chunk))
            filters = (*request.of_external, ("msg_hash", *hashes))
            kept |= request.unite(segment.choose_lines(sorted(rows), filters))
            if len(kept) >= request.most:
                break
        found |= kept
    return request.sort(found)[: request.most]


def read_alone(segments: Sequence[Segment], request: PageRequest) -> list[Any]:
    """Return messages of a range whose sender is not in the segment that consumed them.

    Raises:
        Declined: there are too many.
    """
    budget = Budget()
    found: list[Any] = []
    for segment in segments:
        postings = segment.alone_now if request.by_time else segment.alone_lt
        places = range(*postings.find_between(request.low, request.high))
        found += read_places(segment, postings, places, request.of_span, budget)
    return found


def list_of_key(
    segments: Sequence[Segment], name: str, key: int, request: PageRequest
) -> list[Any]:
    """Return the first messages of the postings of an opcode or a body, one end of each.

    Raises:
        Declined: too many records would have to be read.
    """
    budget = Budget()
    lists = []
    for segment in segments:
        postings: Postings = getattr(segment, name)
        start, end = postings.find(key)
        if start < end:
            border = find_external(segment, postings, start, end)
            lists.append((segment, postings, range(start, border), range(border, end)))

    def list_external(part: PageRequest) -> list[Any]:
        found: dict[bytes, Any] = {}
        for segment, postings, _, places in lists:
            found |= read_until(segment, postings, places, part.of_external, part, budget)
        return part.sort(found)[: part.most]

    def list_created(part: PageRequest) -> list[Any]:
        read = _read_timed if part.by_time else read_created
        found: dict[bytes, Any] = {}
        for segment, postings, places, _ in lists:
            found |= read(segment, postings, places, part, budget)
        return part.sort(found)[: part.most]

    return request.fill(list_external, list_created)


def find_external(segment: Segment, postings: Postings, start: int, end: int) -> int:
    """Return where the messages without a creation time begin; they come last."""
    if start == end or read_creation(segment, postings, end - 1) < NO_LT:
        return end
    return bisect_left(
        range(end), NO_LT, start, end, key=lambda at: read_creation(segment, postings, at)
    )


def read_creation(segment: Segment, postings: Postings, at: int) -> int:
    """Return the creation of the message at a place; ``NO_LT`` if it has none."""
    (line,) = segment.choose_lines([(postings.rows[at], postings.places[at])], ())
    return NO_LT if line.created_lt is None else line.created_lt


def read_created(
    segment: Segment,
    postings: Postings,
    places: Sequence[int],
    request: PageRequest,
    budget: Budget,
) -> dict[bytes, Any]:
    """Return the first messages that were created within a range; places are by creation."""
    if (request.low, request.high) != (0, NO_LT):
        places = cut_created(segment, postings, places, request)
    return read_until(segment, postings, places, request.of_span, request, budget)


def cut_created(
    segment: Segment, postings: Postings, places: Sequence[int], request: PageRequest
) -> Sequence[int]:
    """Return those of places by creation whose messages were created within a span."""

    def creation_at(at: int) -> int:
        return read_creation(segment, postings, at)

    start = bisect_left(places, request.low, key=creation_at)
    return places[
        start : bisect_right(places, min(request.high, NO_LT - 1), start, key=creation_at)
    ]


def _read_timed(
    segment: Segment, postings: Postings, places: range, request: PageRequest, budget: Budget
) -> dict[bytes, Any]:
    """Return the first messages by creation time in Unix seconds.

    They are read by the time of their rows, which sent a message or consumed it later.
    """
    found: dict[bytes, Any] = {}
    wait, done, settled = segment.wait_s, 0, 0
    span = request.low, min(NO_LT, request.high + wait)
    while settled < request.most:
        most = done + count_next(request.most, settled, done)
        nearest = postings.list_nearest(
            segment.now, places, span, most, descending=request.descending
        )
        if len(nearest) == done:
            break
        lines = read_places(segment, postings, nearest[done:], request.of_span, budget)
        found |= request.unite(lines)
        edge = segment.now[postings.rows[nearest[-1]]]
        settled = request.count_settled(found, edge if request.descending else edge - wait)
        done = len(nearest)
    return found

"""Pages of messages by filters: of an opcode, of a body, or those without a creation.

Messages stand by their moment, creation in logical time or in unix seconds, then by hash; those
without a creation, which are from outside, after all others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.declined import Declined
from tonlake.lake.index.segment.ends import NO_LT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Segment

MOST_READ = 10_000
"""Records read for a page; one for which more are needed is left to SQL."""

FEWEST = 16
"""Records read at once at first; then twice as many each time."""


class Wanted(NamedTuple):
    """A page: the filters that are left, the span of moments, both ends included, and the order.

    ``keep`` takes some messages, each once, and returns those that the filters leave: some of
    those that have a creation, if ``created``, and of those without one, if ``external``. ``most``
    are as many as precede the end of the page.
    """

    keep: Callable[[list[Any]], list[Any]]
    by_time: bool
    low: int
    high: int
    created: bool
    external: bool
    descending: bool
    most: int

    def order(self, line: Any) -> tuple[int, bytes]:  # noqa: ANN401 - a message
        """Return what a message stands by."""
        moment = line.created_at if self.by_time else line.created_lt
        return NO_LT if moment is None else moment, line.msg_hash

    def sort(self, found: dict[bytes, Any]) -> list[Any]:
        """Return messages in order."""
        return sorted(found.values(), key=self.order, reverse=self.descending)

    def within(self, lines: Sequence[Any]) -> dict[bytes, Any]:
        """Return messages of the span by hash; those without a creation if ``external``."""
        found = {
            line.msg_hash: line
            for line in lines
            if (self.low <= self.order(line)[0] <= self.high)
            and (self.external or line.created_lt is not None)
        }
        return {line.msg_hash: line for line in self.keep(list(found.values()))}

    def fill(
        self, external: Callable[[Wanted], list[Any]], created: Callable[[Wanted], list[Any]]
    ) -> list[Any]:
        """Return messages without a creation and with one, as many as are wanted, in order."""
        parts = [(self.external, external), (self.created, created)]
        page: list[Any] = []
        for is_wanted, part in parts if self.descending else parts[::-1]:
            if is_wanted and len(page) < self.most:
                page += part(self._replace(external=False, most=self.most - len(page)))
        return page


class Budget:
    """Records that may still be read."""

    def __init__(self, most: int = MOST_READ) -> None:
        """Begin with ``most``."""
        self._left = most

    def spend(self, count: int) -> None:
        """Take some.

        Raises:
            Declined: fewer are left.
        """
        self._left -= count
        if self._left < 0:
            raise Declined


def read_places(
    segment: Segment, postings: Postings, places: Sequence[int], budget: Budget
) -> list[Any]:
    """Return the messages at places of postings.

    Raises:
        Declined: they are too many.
    """
    if not places:
        return []
    budget.spend(len(places))
    found = [(postings.rows[at], postings.places[at]) for at in places]
    return segment.read_lines(found)


def read_until(
    segment: Segment, postings: Postings, places: range, wanted: Wanted, budget: Budget
) -> dict[bytes, Any]:
    """Return the first of the messages at ascending places that the filters leave, by hash."""
    found: dict[bytes, Any] = {}
    ordered = places[::-1] if wanted.descending else places
    size = max(FEWEST, wanted.most)
    start = 0
    while start < len(ordered) and len(found) < wanted.most:
        lines = read_places(segment, postings, ordered[start : start + size], budget)
        found |= {line.msg_hash: line for line in wanted.keep(lines)}
        start, size = start + size, size * 2
    return found


def list_external(segments: Sequence[Segment], wanted: Wanted) -> list[Any]:
    """Return the first of all messages that have no creation; they stand by hash.

    Raises:
        Declined: too many records have to be read.
    """
    budget = Budget()
    found: dict[bytes, Any] = {}
    for segment in segments:
        kept: dict[bytes, Any] = {}
        for chunk in segment.message.list_chunks(FEWEST * 4, descending=wanted.descending):
            # No transaction sent what is from outside.
            rows = {at: row for at, row in chunk.items() if not segment.traces.is_sent(row)}
            budget.spend(len(rows))
            lines = [
                line
                for at, record in zip(rows, segment.read_records(list(rows.values())), strict=True)
                for line in record.messages
                if line.created_lt is None and segment.message.has_at(line.msg_hash, at)
            ]
            kept |= {line.msg_hash: line for line in wanted.keep(lines)}
            if len(kept) >= wanted.most:
                break
        found |= kept
    return wanted.sort(found)[: wanted.most]


def read_alone(segments: Sequence[Segment], first: int, last: int, *, by_time: bool) -> list[Any]:
    """Return messages of a span whose source has no row in the segment that consumed them.

    Raises:
        Declined: they are many.
    """
    budget = Budget()
    found: list[Any] = []
    for segment in segments:
        postings = segment.alone_now if by_time else segment.alone_lt
        places = range(*postings.find_between(first, last))
        found += read_places(segment, postings, places, budget)
    return found


def list_of_key(segments: Sequence[Segment], name: str, key: int, wanted: Wanted) -> list[Any]:
    """Return the first messages of an opcode's or a body's postings, either end of each.

    Raises:
        Declined: too many records have to be read.
    """
    budget = Budget()
    found: dict[bytes, Any] = {}
    for segment in segments:
        postings: Postings = getattr(segment, name)
        start, end = postings.find(key)
        if wanted.by_time:
            lines = read_places(segment, postings, range(start, end), budget)
            found |= wanted.within(lines)
        else:
            places = cut_places(segment, postings, range(start, end), wanted)
            found |= read_until(segment, postings, places, wanted, budget)
    return wanted.sort(found)[: wanted.most]


def cut_places(segment: Segment, postings: Postings, places: range, wanted: Wanted) -> range:
    """Return the places of messages created within a span of logical time."""
    if (wanted.low, wanted.high) == (0, NO_LT):
        return places

    def creation_at(at: int) -> int:
        (line,) = segment.read_lines([(postings.rows[at], postings.places[at])])
        return wanted.order(line)[0]

    end = min(wanted.high, NO_LT - 1)
    return range(
        bisect_left(range(places.stop), wanted.low, places.start, places.stop, key=creation_at),
        bisect_right(range(places.stop), end, places.start, places.stop, key=creation_at),
    )

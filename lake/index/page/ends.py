"""Pages of the transactions that sent or consumed messages with an opcode or a body.

Messages of a key are sorted by creation time, and so are the transactions that sent them. Those
that consumed them are found in the order of arrival, among as many of the last messages as
necessary: a segment knows the longest time that any message in it waited for its consumer. External
messages, which have no creation time, are sorted by hash: their transactions are read in the order
of logical time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page.correspondence import MAX_SENT
from tonlake.lake.index.page.messages import (
    MIN_READ,
    Budget,
    find_external,
    read_creation,
    read_places,
)
from tonlake.lake.index.segment.ends import NO_LT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Filter, Segment

    Cut = Callable[..., Iterator[tuple[Sequence[int], int]]]
    ReadEnds = Callable[[list[Any]], dict[bytes, int]]


_ROOM = 512
"""Messages searched for the newest arrivals in the first step."""


def list_transactions(
    segments: Sequence[Segment],
    name: str,
    key: int,
    filters: Sequence[Filter],
    read_ends: ReadEnds,
    *,
    descending: bool,
    most: int,
) -> list[bytes]:
    """Return the first ``most`` transactions of a key, and others with the last one's logical time.

    Args:
        segments: All segments.
        name: Name of the postings.
        key: The key in them.
        filters: Filters on the messages.
        read_ends: Returns the logical times of the transactions at either end of messages, by
            transaction hash.
        descending: Whether the newest come first.
        most: Number of transactions up to the end of the page.

    Raises:
        Declined: too many records would have to be read.
    """
    budget = Budget()
    found: dict[bytes, int] = {}
    for segment in segments[::-1] if descending else segments:
        postings: Postings = getattr(segment, name)
        start, end = postings.find(key)
        if start == end or (
            len(found) >= most and _count_before(found, segment, descending=descending) >= most
        ):
            continue
        border = find_external(segment, postings, start, end)
        again: Postings = getattr(segment, f"{name}_again")
        for cut, listed, places in (
            (_cut_external, again, range(*again.find(key))),
            (_cut_external, postings, range(border, end)),
            (_choose_cut(segment, descending=descending), postings, range(start, border)),
        ):
            for part, edge in cut(segment, listed, places, descending=descending):
                found |= read_ends(read_places(segment, listed, part, filters, budget))
                if sum(lt > edge if descending else lt < edge for lt in found.values()) >= most:
                    break
    ordered = sorted(found, key=found.__getitem__, reverse=descending)
    end = most
    while 0 < end < len(ordered) and found[ordered[end]] == found[ordered[end - 1]]:
        end += 1
    return ordered[:end]


def _count_before(found: dict[bytes, int], segment: Segment, *, descending: bool) -> int:
    """Return how many transactions come before all of a segment."""
    first, last = segment.lt_span
    return sum(lt > last if descending else lt < first for lt in found.values())


def _choose_cut(segment: Segment, *, descending: bool) -> Cut:
    return _cut_arrived if descending and segment.leads_to_consumers else _cut_created


def _cut_arrived(
    segment: Segment, postings: Postings, places: range, *, descending: bool
) -> Iterator[tuple[Sequence[int], int]]:
    """Yield places by arrival, newest first, with the logical time of the last one yielded.

    The last places are searched, as many as it takes to be sure that all others arrived earlier.
    """
    done, size, room = 0, MIN_READ, _ROOM
    while done < len(places):
        near, most = places[-room:], done + size
        nearest = postings.list_nearest(segment.lt, near, (0, NO_LT), most, descending=descending)
        edge = segment.lt[postings.rows[nearest[-1]]]
        if len(near) < len(places) and (
            len(near) < most or read_creation(segment, postings, near[0]) + segment.wait_lt >= edge
        ):
            room *= 4
            continue
        yield nearest[done:], edge
        done, size = len(nearest), size * 2


def _cut_created(
    segment: Segment, postings: Postings, places: range, *, descending: bool
) -> Iterator[tuple[Sequence[int], int]]:
    """Yield places, and a bound of the logical times of transactions at later places."""
    ordered = places[::-1] if descending else places
    start, size = 0, MIN_READ
    while start < len(ordered):
        part = ordered[start : start + size]
        created_lt = read_creation(segment, postings, part[-1])
        yield part, created_lt + segment.wait_lt if descending else created_lt - MAX_SENT
        start, size = start + size, size * 2


def _cut_external(
    segment: Segment, postings: Postings, places: range, *, descending: bool
) -> Iterator[tuple[Sequence[int], int]]:
    """Yield the same for external messages, which are sorted by hash but read by transaction."""
    done, size = 0, MIN_READ
    while done < len(places):
        nearest = postings.list_nearest(
            segment.lt, places, (0, NO_LT), done + size, descending=descending
        )
        yield nearest[done:], segment.lt[postings.rows[nearest[-1]]]
        done, size = len(nearest), size * 2

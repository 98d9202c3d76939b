"""Pages over several segments: rows of sorted lists in one order, without reading them all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import groupby, repeat
from operator import eq, itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.hit import Hit
from tonlake.lake.index.segment.ends import NO_LT, opcode_key
from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Segment


MOST_MERGED = 10_000
"""Rows read to merge several lists; a deeper page is left to the named queries."""


class Listed(NamedTuple):
    """Rows of one segment by ascending logical time: those at ``start..end`` of ``rows``."""

    segment: Segment
    rows: Sequence[int]
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.end - self.start

    def lt_at(self, at: int) -> int:
        """Return the logical time of a place in ``rows``."""
        lt: int = self.segment.lt[self.rows[at]]
        return lt

    def now_at(self, at: int) -> int:
        """Return the unix seconds of a place in ``rows``; of one account they ascend as well."""
        now: int = self.segment.now[self.rows[at]]
        return now

    def below(self, lt: int) -> int:
        """Return the first place whose logical time is not below ``lt``."""
        return bisect_left(range(self.end), lt, self.start, self.end, key=self.lt_at)

    def above(self, lt: int) -> int:
        """Return the first place whose logical time is above ``lt``."""
        return bisect_right(range(self.end), lt, self.start, self.end, key=self.lt_at)

    def cut(self, first: int | None, last: int | None, *, by_time: bool = False) -> Listed:
        """Return the rows within a span of logical time, both ends included.

        ``by_time``: of unix seconds; for the rows of one account only.
        """
        start, end, places = self.start, self.end, range(self.end)
        key = self.now_at if by_time else self.lt_at
        if (first is not None and last is not None and start < end) and (
            first <= key(start) and key(end - 1) <= last
        ):
            return self
        if first is not None:
            start = bisect_left(places, first, start, end, key=key)
        if last is not None:
            end = bisect_right(places, last, start, end, key=key)
        return self._replace(start=start, end=end)


def read_page(lists: Sequence[Listed], *, descending: bool, offset: int, limit: int) -> list[Hit]:
    """Return a page of all rows by logical time; those of one time by workchain and account."""
    lists = [listed for listed in lists if listed.size]
    if not lists or limit <= 0:
        return []
    if len(lists) == 1:
        hits = _slice(lists[0], descending=descending, offset=offset, limit=limit)
        if hits is not None:
            return hits
    edge = _find_edge(lists, offset, descending=descending)
    first = offset
    todo: list[tuple[Listed, range]] = []
    for listed in lists:
        start = listed.above(edge) if descending else listed.below(edge)
        first -= listed.end - start if descending else start - listed.start
        places = range(start - 1, listed.start - 1, -1) if descending else range(start, listed.end)
        todo.append((listed, places))
    found = [
        item
        for listed, places in todo
        for item in _take(listed, places, first + limit, listed.segment.lt.__getitem__)
    ]
    return _sort(found, descending=descending)[first : first + limit]


def _slice(listed: Listed, *, descending: bool, offset: int, limit: int) -> list[Hit] | None:
    """Return a page of one list; None where two of its rows share a time, so that accounts count.

    Rows of one time stand by account, and not by workchain and account as a page has them.
    """
    if descending:
        end = max(listed.start, listed.end - offset)
        start = max(listed.start, end - limit)
    else:
        start = min(listed.end, listed.start + offset)
        end = min(listed.end, start + limit)
    if not isinstance(listed.rows, range):  # those of one account have different times
        seen = range(max(listed.start, start - 1), min(listed.end, end + 1))
        around = list(map(listed.lt_at, seen))
        if any(map(eq, around, around[1:])):
            return None
    hits = list(map(Hit, repeat(listed.segment), listed.rows[start:end]))
    return hits[::-1] if descending else hits


def _find_edge(lists: Sequence[Listed], offset: int, *, descending: bool) -> int:
    """Return the farthest logical time from which reading still begins before ``offset``."""
    if len(lists) == 1:
        only = lists[0]
        offset = min(offset, only.size - 1)
        return only.lt_at(only.end - 1 - offset if descending else only.start + offset)
    low = min(listed.lt_at(listed.start) for listed in lists)
    high = max(listed.lt_at(listed.end - 1) for listed in lists)
    if offset == 0:
        return high if descending else low
    lts = range(low, high + 1)
    if descending:

        def missed(lt: int) -> int:
            return -sum(listed.end - listed.above(lt) for listed in lists)

        return lts[bisect_left(lts, -offset, key=missed)]

    def passed(lt: int) -> int:
        return sum(listed.below(lt) - listed.start for listed in lists)

    return lts[bisect_right(lts, offset, key=passed) - 1]


def order_ties(found: Iterable[tuple[Any, Hit]], most: int | None = None) -> list[Hit]:
    """Return the first transactions of some in the order of their moments; ties by account.

    That is by workchain and account id, which take longer to read than a moment does.
    """
    hits: list[Hit] = []
    for _, tied in groupby(found, key=itemgetter(0)):
        if most is not None and len(hits) >= most:
            break
        same = [hit for _, hit in tied]
        hits += same if len(same) == 1 else sorted(same, key=itemgetter("workchain", "account"))
    return hits[:most]


_Taken = tuple[Any, int, bytes, Hit]
"""What a row stands by, its workchain and account, and where it is."""


def _take(
    listed: Listed, places: Sequence[int], most: int, moment_of: Callable[[int], Any]
) -> Iterator[_Taken]:
    """Yield the rows of ``places``: ``most``, and then all others of the last one's moment."""
    segment, rows = listed.segment, listed.rows
    last = None
    for taken, at in enumerate(places):
        row = rows[at]
        moment = moment_of(row)
        if taken >= most and moment != last:
            return
        last = moment
        yield moment, *segment.account_of(segment.account_number(row)), Hit(segment, row)


def _sort(found: list[_Taken], *, descending: bool) -> list[Hit]:
    found.sort(key=itemgetter(1, 2))
    found.sort(key=itemgetter(0), reverse=descending)
    return [item[-1] for item in found]


def read_timed_page(
    lists: Sequence[Listed], *, descending: bool, offset: int, limit: int
) -> list[Hit]:
    """Return a page of lists by time, then logical time; the rest by workchain and account.

    Each list stands by time and logical time itself.

    Raises:
        Declined: the page is too deep to read all that precedes it.
    """
    most = offset + limit
    if most * len(lists) > MOST_MERGED:
        raise Declined
    step = -1 if descending else 1
    found = [
        item
        for listed in lists
        for item in _take(
            listed, range(listed.start, listed.end)[::step], most, listed.segment.moment_of
        )
    ]
    return _sort(found, descending=descending)[offset:most]


class MessageQuery(NamedTuple):
    """Messages whose ``column`` has a value, and which page of them."""

    column: Literal["opcode", "body_hash"]
    value: Any
    descending: bool
    offset: int
    limit: int


Found = tuple["Segment", "Postings", int, int]
"""A segment, its postings, and where those of the key begin and end."""


def find_key(column: str, value: Any) -> tuple[str, int]:  # noqa: ANN401 - of the column
    """Return the postings that have messages by the value of a column, and its key there."""
    return ("opcode", opcode_key(value)) if column == "opcode" else ("body", cut_hash(value))


def _find_messages(segments: Iterable[Segment], query: MessageQuery) -> Iterator[Found]:
    name, key = find_key(query.column, query.value)
    for segment in segments:
        postings = getattr(segment, name)
        start, end = postings.find(key)
        if start < end:
            yield segment, postings, start, end


def read_messages(segments: Iterable[Segment], query: MessageQuery) -> list[Any]:
    """Return the ``Found`` of a page of messages by creation and then hash, either end of each.

    Those without a creation come after all others.

    Raises:
        Declined: the page is deep and several segments have some of it, or hashes share a key.
    """
    found = list(_find_messages(segments, query))
    first, last = query.offset, query.offset + query.limit
    if len(found) > 1:
        if last * len(found) > MOST_MERGED:
            raise Declined
        first = 0
    rows: dict[bytes, Any] = {}
    for item in found:
        lines = _read_slice(item, query, first, last)
        if len(found) == 1:  # has each once, in this order
            return lines[::-1] if query.descending else lines
        for line in lines:
            rows.setdefault(line.msg_hash, line)
    page = sorted(rows.values(), key=creation_of, reverse=query.descending)
    return page[query.offset : last]


def _read_slice(item: Found, query: MessageQuery, first: int, last: int) -> list[Any]:
    """Return a message for each entry of one segment's slice."""
    segment, postings, start, end = item
    if query.descending:
        slice_ = slice(max(start, end - last), max(start, end - first))
    else:
        slice_ = slice(min(end, start + first), min(end, start + last))
    places = list(zip(postings.rows[slice_], postings.places[slice_], strict=True))
    lines = segment.choose_lines(places, [(query.column, query.value, query.value)])
    if len(lines) < len(places):
        raise Declined
    return lines


def creation_of(line: Any) -> tuple[int, bytes]:  # noqa: ANN401 - a MessageRow
    """Return what messages stand by: creation, those without one last, then hash."""
    return NO_LT if line.created_lt is None else line.created_lt, line.msg_hash

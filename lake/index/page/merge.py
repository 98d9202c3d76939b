"""Pages over several segments: merges sorted lists of rows without reading them all."""

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


MAX_MERGED = 10_000
"""Most rows read to merge several lists; deeper pages are left to SQL."""


class Listed(NamedTuple):
    """Rows of one segment by ascending logical time: ``rows[start:end]``."""

    segment: Segment
    rows: Sequence[int]
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.end - self.start

    def lt_at(self, at: int) -> int:
        """Return the logical time at a position in ``rows``."""
        lt: int = self.segment.lt[self.rows[at]]
        return lt

    def now_at(self, at: int) -> int:
        """Return the Unix seconds at a position in ``rows``; they ascend within one account."""
        now: int = self.segment.now[self.rows[at]]
        return now

    def below(self, lt: int) -> int:
        """Return the first position whose logical time is not below ``lt``."""
        return bisect_left(range(self.end), lt, self.start, self.end, key=self.lt_at)

    def above(self, lt: int) -> int:
        """Return the first position whose logical time is above ``lt``."""
        return bisect_right(range(self.end), lt, self.start, self.end, key=self.lt_at)

    def cut(self, first: int | None, last: int | None, *, by_time: bool = False) -> Listed:
        """Return the rows within a range of logical time, both ends included.

        ``by_time``: the range is in Unix seconds; only for rows of one account.
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
    """Return a page of all rows by logical time; ties by workchain and account."""
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
    """Return a page of one list; None if rows share a time, so that the order of accounts matters.

    Rows of one time are sorted by account id, but pages by workchain and account id.
    """
    if descending:
        end = max(listed.start, listed.end - offset)
        start = max(listed.start, end - limit)
    else:
        start = min(listed.end, listed.start + offset)
        end = min(listed.end, start + limit)
    if not isinstance(listed.rows, range):  # rows of one account have distinct times
        seen = range(max(listed.start, start - 1), min(listed.end, end + 1))
        around = list(map(listed.lt_at, seen))
        if any(map(eq, around, around[1:])):
            return None
    hits = list(map(Hit, repeat(listed.segment), listed.rows[start:end]))
    return hits[::-1] if descending else hits


def _find_edge(lists: Sequence[Listed], offset: int, *, descending: bool) -> int:
    """Return the farthest logical time at which reading still begins before ``offset``."""
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
    """Return the first ``most`` transactions by moment; ties by workchain and account id.

    These take longer to read than a moment does, so they are read only for ties.
    """
    hits: list[Hit] = []
    for _, tied in groupby(found, key=itemgetter(0)):
        if most is not None and len(hits) >= most:
            break
        same = [hit for _, hit in tied]
        hits += same if len(same) == 1 else sorted(same, key=itemgetter("workchain", "account"))
    return hits[:most]


_Taken = tuple[Any, int, bytes, Hit]
"""Sort key of a row, its workchain and account, and its position."""


def _take(
    listed: Listed, places: Sequence[int], most: int, moment_of: Callable[[int], Any]
) -> Iterator[_Taken]:
    """Yield ``most`` rows of ``places``, then all others with the last one's moment."""
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
    """Return a page of lists by time, then logical time; ties by workchain and account.

    Each list is itself sorted by time and logical time.

    Raises:
        Declined: the page is too deep.
    """
    most = offset + limit
    if most * len(lists) > MAX_MERGED:
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
    """A page of the messages whose ``column`` has a value."""

    column: Literal["opcode", "body_hash"]
    value: Any
    descending: bool
    offset: int
    limit: int


Found = tuple["Segment", "Postings", int, int]
"""A segment, its postings, and the range of the key in them."""


def find_key(column: str, value: Any) -> tuple[str, int]:  # noqa: ANN401 - of the column
    """Return the postings for the values of a column, and the key of the value in them."""
    return ("opcode", opcode_key(value)) if column == "opcode" else ("body", cut_hash(value))


def _find_messages(segments: Iterable[Segment], query: MessageQuery) -> Iterator[Found]:
    name, key = find_key(query.column, query.value)
    for segment in segments:
        postings = getattr(segment, name)
        start, end = postings.find(key)
        if start < end:
            yield segment, postings, start, end


def read_messages(segments: Iterable[Segment], query: MessageQuery) -> list[Any]:
    """Return the ``Found`` of a page of messages by creation, then hash, one end of each.

    Messages without a creation time come last.

    Raises:
        Declined: the page is deep and spans several segments, or hashes share a key.
    """
    found = list(_find_messages(segments, query))
    first, last = query.offset, query.offset + query.limit
    if len(found) > 1:
        if last * len(found) > MAX_MERGED:
            raise Declined
        first = 0
    rows: dict[bytes, Any] = {}
    for item in found:
        lines = _read_slice(item, query, first, last)
        if len(found) == 1:  # its postings have each message once, in this order
            return lines[::-1] if query.descending else lines
        for line in lines:
            rows.setdefault(line.msg_hash, line)
    page = sorted(rows.values(), key=creation_of, reverse=query.descending)
    return page[query.offset : last]


def _read_slice(item: Found, query: MessageQuery, first: int, last: int) -> list[Any]:
    """Return a message for each entry in a slice of one segment."""
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
    """Return the sort key of a message: creation, those without one last, then hash."""
    return NO_LT if line.created_lt is None else line.created_lt, line.msg_hash

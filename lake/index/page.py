"""Pages over several segments: walks rows in order, and reads no more of them than needed."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import msgspec

from tonlake.lake.account import AccountId
from tonlake.lake.index.segment.declared import NO_LT
from tonlake.lake.index.segment.segment import Segment, SegmentTable


class Declined(Exception):
    """The index cannot answer, or only slowly, which anything here may find: SQL does."""


MAX_READ = 10_000
"""Most rows read for a page; SQL answers if more are needed."""

MAX_SKIPPED = 50_000
"""Most places before a page that are counted, at 1 to 2 µs each; deeper pages are left to SQL."""

MAX_WALKED = 200_000
"""Most rows compared with other postings for a page."""

MAX_SORTED = 20_000
"""Most rows of postings that are sorted by another order; more are looked for along that order."""

_MIN_READ = 16
"""Rows in each read but the first, at least."""

_MAX_COUNTED = 4_096
"""Places counted at once, at most."""

R = TypeVar("R")
T = TypeVar("T")

Place = tuple[Any, T, int]
"""A row of a walk: its moment, the table or the segment that has it, and its number there."""


def walk(
    table: SegmentTable,
    moment: str,
    span: tuple[int, int],
    lists: Sequence[Sequence[int]] = (),
    *,
    descending: bool,
    first: int = 0,
) -> Iterator[tuple[int, int]]:
    """Yield moment and number of the rows in all of the lists, which ascend, in order.

    ``moment`` is the first of the table's numbers, by which rows or those of each list are sorted,
    or another one, by which few are sorted here: then ties are in any order. ``span`` are bounds.
    The ``first`` rows of the shortest list, or of the table, are left out.
    """
    moments, order = table.numbers[moment], table.orders.get(moment)
    rows: Sequence[int] = range(table.count) if order is None else order
    others = sorted(lists, key=len)
    if others and (order is None or len(others[0]) <= MAX_SORTED):
        rows, *others = others
        if moment != next(iter(table.numbers)):
            rows = sorted(rows, key=moments.__getitem__)
    start = bisect_left(rows, span[0], key=moments.__getitem__)
    stop = bisect_right(rows, span[1], start, key=moments.__getitem__)
    rows = rows[start:stop][:: -1 if descending else 1]
    for walked, row in enumerate(rows[first:]):
        if not others or has_row(others, row):
            yield moments[row], row
        if walked > MAX_WALKED:
            raise Declined


def has_row(lists: Iterable[Sequence[int]], row: int) -> bool:
    """Whether all of some ascending lists have a row."""
    for rows in lists:
        at = bisect_left(rows, row)
        if at == len(rows) or rows[at] != row:
            return False
    return True


def merge_walks(
    walks: Sequence[tuple[T, Iterator[tuple[Any, int]]]], *, descending: bool
) -> Iterator[Place[T]]:
    """Yield the rows of the walks of several tables or segments, by moment."""
    named = (_name(owner, rows) for owner, rows in walks)
    return merge(*named, key=itemgetter(0), reverse=descending)


def _name(owner: T, rows: Iterator[tuple[Any, int]]) -> Iterator[Place[T]]:
    return ((moment, owner, row) for moment, row in rows)


def cut_walk(
    places: Iterator[Place[T]],
    read: Callable[[list[Place[T]]], list[Any]],
    sort: Callable[[list[Any]], None],
    asked: Mapping[str, Any],
    *,
    further: Sequence[Any] = (),
    count: Callable[[list[Place[T]]], int] | None = None,
) -> list[Any]:
    """Return the page of the rows that ``read`` finds at places, and of ``further`` ones.

    ``count`` returns how many it would find, in less time: rows before the page are not read.
    """
    offset = asked["offset"]
    if count is not None:
        # With all further rows before them, these are before the page, too.
        skipped, places = _skip(places, offset - len(further), count)
        offset -= skipped
    most = offset + asked["limit"]
    found = [*read_first(places, read, most), *further]
    sort(found)
    return found[offset:most]


def _skip(
    places: Iterator[Place[T]], most: int, count: Callable[[list[Place[T]]], int]
) -> tuple[int, Iterator[Place[T]]]:
    """Return the number of rows skipped, all those of a moment or none, and the other places."""
    skipped, walked, chunk = 0, 0, list[Place[T]]()
    while skipped < most:
        size = min(max(_MIN_READ, most - skipped), _MAX_COUNTED)
        chunk += islice(places, max(0, size + 1 - len(chunk)))
        end = len(chunk)
        if end > size:
            while end and chunk[end - 1][0] == chunk[-1][0]:
                end -= 1
        found = count(chunk[:end])
        if not end or skipped + found > most:
            break
        skipped, walked = skipped + found, walked + end
        if walked > MAX_SKIPPED:
            raise Declined
        del chunk[:end]
    return skipped, chain(chunk, places)


def read_first(
    places: Iterator[Place[T]], read: Callable[[list[Place[T]]], list[Any]], most: int
) -> list[Any]:
    """Return what ``read`` finds at the first ``most`` places, and those of the last moment."""
    found: list[Any] = []
    count, size = 0, most
    ahead = next(places, None)
    while ahead is not None and len(found) < most:
        chunk = [ahead]
        ahead = next(places, None)
        while ahead is not None and (len(chunk) < size or ahead[0] == chunk[-1][0]):
            chunk.append(ahead)
            ahead = next(places, None)
        count += len(chunk)
        if count > MAX_READ:
            raise Declined
        found += read(chunk)
        size = max(_MIN_READ, 2 * (most - len(found)))
    return found


def group_places(places: Iterable[tuple[Any, T, R]]) -> dict[T, list[R]]:
    """Return the rows at places by their tables or segments."""
    found: dict[T, list[R]] = {}
    for _, owner, row in places:
        found.setdefault(owner, []).append(row)
    return found


def read_rows(places: Iterable[Place[SegmentTable]]) -> list[Any]:
    """Return the rows of tables at places, unordered."""
    return [row for table, rows in group_places(places).items() for row in table.read(rows)]


def is_within(value: int, first: int | None, last: int | None) -> bool:
    """Whether a value lies in a range, both ends included; None: no bound."""
    return (first is None or value >= first) and (last is None or value <= last)


def bound(first: int | None, last: int | None) -> tuple[int, int]:
    """Return a range of moments, both ends included; None: it is open at that end."""
    return 0 if first is None else first, NO_LT if last is None else last


def has_other_bounds(asked: Mapping[str, Any]) -> bool:
    """Whether a list has bounds on the moment that it is not ordered by."""
    unit = "lt" if asked["by_time"] else "utime"
    return (asked[f"start_{unit}"], asked[f"end_{unit}"]) != (None, None)


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A transaction found: its segment and its row there; columns are read by name."""

    segment: Any
    row: int

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a column
        """Return a column of ``transaction_traces``."""
        return _COLUMNS[name](self.segment.transactions, self.row)

    @property
    def hash(self) -> bytes:
        """The hash."""
        tx_hash: bytes = self.segment.transactions.hash_of(self.row)
        return tx_hash

    @property
    def lt(self) -> int:
        """The logical time."""
        lt: int = self.segment.transactions.lt[self.row]
        return lt

    @property
    def account(self) -> AccountId:
        """The account."""
        account: AccountId = self.segment.transactions.account_of(self.row)
        return account


class Member(Hit, frozen=True, gc=False):
    """A transaction of a trace, with the columns that its tree is drawn from."""

    trace_id: bytes
    hash: bytes
    parent_hash: bytes | None

    __getitem__ = object.__getattribute__


_COLUMNS: dict[str, Callable[[Any, int], Any]] = {
    "hash": lambda transactions, row: transactions.hash_of(row),
    "lt": lambda transactions, row: transactions.lt[row],
    "workchain": lambda transactions, row: transactions.account_of(row)[0],
    "account": lambda transactions, row: transactions.account_of(row)[1],
    "trace_id": lambda transactions, row: transactions.trace_of(row),
    "parent_hash": lambda transactions, row: transactions.parent_of(row),
}


class Listed(NamedTuple):
    """Transactions of one segment that ascend by logical time."""

    segment: Segment
    rows: Sequence[int]

    def cut(self, first: int | None, last: int | None, *, by_time: bool = False) -> "Listed":
        """Return those from a logical time to another, or ``by_time``, Unix seconds."""
        if first is None and last is None:
            return self
        transactions = self.segment.transactions
        moments = transactions.now if by_time else transactions.lt
        low, high = bound(first, last)
        start = bisect_left(self.rows, low, key=moments.__getitem__)
        end = bisect_right(self.rows, high, start, key=moments.__getitem__)
        return self._replace(rows=self.rows[start:end])


def cut_account_page(lists: Sequence[Listed], asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page of the transactions of one account; the lists ascend from one to the next."""
    hits: list[Hit] = []
    step, offset = -1 if asked["descending"] else 1, asked["offset"]
    for segment, rows in lists[::step]:
        page = rows[::step][offset : offset + asked["limit"] - len(hits)]
        offset = max(0, offset - len(rows))
        hits += [Hit(segment, row) for row in page]
    return hits


def cut_hits(hits: Iterable[Hit], asked: Mapping[str, Any]) -> list[Hit]:
    """Return a page of transactions by logical time; ties by workchain and account."""
    offset = asked["offset"]
    found = sorted(hits, key=lambda hit: hit.lt, reverse=asked["descending"])
    return order_ties(((hit.lt, hit) for hit in found), offset + asked["limit"])[offset:]


def order_ties(found: Iterable[tuple[Any, Hit]], most: int) -> list[Hit]:
    """Return the first ``most`` transactions by moment; only ties are compared by account."""
    hits: list[Hit] = []
    for _, tied in groupby(found, key=itemgetter(0)):
        if len(hits) >= most:
            break
        same = [hit for _, hit in tied]
        hits += same if len(same) == 1 else sorted(same, key=lambda hit: hit.account)
    return hits[:most]

"""Transfers and burns of jettons, and transfers of NFTs, from segments."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.answer.contracts import MAX_ROWS, address_of, pair_accounts
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.segment.ends import NO_LT
from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.index import Index
    from tonlake.lake.index.segment.contracts import SegmentTable

Row = dict[str, Any]

_JETTON = {"account": ("account",), "jetton": ("jetton",)}
_ITEM = {"account": ("account",), "collection": ("collection",)}
COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "jetton_transfers": {**_JETTON, "owner": ("source", "destination")},
    "jetton_burns": {**_JETTON, "owner": ("owner",)},
    "nft_transfers": {**_ITEM, "owner": ("old_owner", "new_owner")},
}
"""The columns that each query filters on, of which one must match."""

_DIRECTIONS = {
    **dict.fromkeys(("source", "old_owner"), "outgoing"),
    **dict.fromkeys(("destination", "new_owner"), "incoming"),
}
"""Columns that are used only if a parameter is true."""


class _Filter(NamedTuple):
    """Columns of which one must have one of the addresses."""

    columns: tuple[str, ...]
    addresses: set[AccountId]


class _Rows(NamedTuple):
    """A part of postings: numbers of rows, sorted by ``moment_at`` of their places."""

    table: SegmentTable
    numbers: Sequence[int]
    start: int
    end: int
    moment_at: Callable[[int], int]

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.end - self.start

    def walk(self, *, descending: bool) -> Iterator[tuple[int, int, int, SegmentTable]]:
        """Yield for each row its moment, the index of its table, its number, and its table."""
        places = range(self.start, self.end)
        for at in reversed(places) if descending else places:
            yield self.moment_at(at), id(self.table), self.numbers[at], self.table


def _find_page(name: str, index: Index, bound: Mapping[str, Any]) -> list[Row]:
    filters = _list_filters(name, bound)
    lists, is_ordered = _list_rows(index.segments.list_tables(name), filters, bound)
    by_time, descending = bound["by_time"], bound["descending"]
    found: list[Row] = []
    most, read = bound["offset"] + bound["limit"], 0
    walks = [rows.walk(descending=descending) for rows in lists]
    merged = merge(*walks, key=itemgetter(0), reverse=descending)
    for _, places in groupby(merged, key=itemgetter(0)):
        if len(found) >= most and is_ordered:
            break
        # A row occurs twice if both of its ends match.
        for (_, number), same in groupby(sorted(places, key=itemgetter(1, 2)), itemgetter(1, 2)):
            read += 1
            row = next(same)[3].read(number)
            if _passes(row, name, filters, bound):
                found.append(row)
        if read > MAX_ROWS:
            raise Declined
    sign, moment = -1 if descending else 1, "now" if by_time else "lt"
    found.sort(key=lambda row: (sign * row[moment], sign * row["lt"], *address_of(row, "account")))
    return found[bound["offset"] : most]


def _list_filters(name: str, bound: Mapping[str, Any]) -> list[_Filter]:
    filters = []
    for prefix, columns in COLUMNS[name].items():
        if addresses := pair_accounts(bound, prefix):
            asked = (each for each in columns if bound.get(_DIRECTIONS.get(each, ""), True))
            filters.append(_Filter(tuple(asked), addresses))
    return filters


def _list_rows(
    tables: Sequence[SegmentTable], filters: Sequence[_Filter], bound: Mapping[str, Any]
) -> tuple[list[_Rows], bool]:
    """Return the rows of the most selective filter, or of the range.

    Also return whether they are in the order of the page: rows of a filter are by logical time.
    """
    choices = [([_find_span(table, bound) for table in tables], True)]
    choices += [
        (
            [
                _find_rows(table, column, account, bound)
                for table in tables
                for column in one.columns
                for account in {account for _, account in one.addresses}
            ],
            not bound["by_time"],
        )
        for one in filters
    ]
    return min(choices, key=lambda choice: sum(rows.size for rows in choice[0]))


def _find_span(table: SegmentTable, bound: Mapping[str, Any]) -> _Rows:
    """Return the rows of a range of time, or of logical time, both ends included."""
    moment, unit = ("now", "utime") if bound["by_time"] else ("lt", "lt")
    first, last = bound[f"start_{unit}"], bound[f"end_{unit}"]
    rows = table.moments[moment]
    places = rows.find_between(0 if first is None else first, NO_LT if last is None else last)
    return _Rows(table, rows.rows, *places, rows.key_at)


def _find_rows(table: SegmentTable, column: str, account: bytes, bound: Mapping[str, Any]) -> _Rows:
    """Return the rows of an address, which are sorted by logical time, within a range of it."""
    lt_of: Callable[[int], int] = table.order.__getitem__
    rows = table.postings[column]
    start, end = rows.find(cut_hash(account))
    if bound["start_lt"] is not None:
        start = bisect_left(rows.rows, bound["start_lt"], start, end, key=lt_of)
    if bound["end_lt"] is not None:
        end = bisect_right(rows.rows, bound["end_lt"], start, end, key=lt_of)
    return _Rows(table, rows.rows, start, end, lambda at: lt_of(rows.rows[at]))


def _passes(row: Row, name: str, filters: Sequence[_Filter], bound: Mapping[str, Any]) -> bool:
    if name == "jetton_transfers" and row["aborted"]:
        return False
    if bound["start_utime"] is not None and row["now"] < bound["start_utime"]:
        return False
    if bound["end_utime"] is not None and row["now"] > bound["end_utime"]:
        return False
    if bound["start_lt"] is not None and row["lt"] < bound["start_lt"]:
        return False
    if bound["end_lt"] is not None and row["lt"] > bound["end_lt"]:
        return False
    return all(
        any(address_of(row, column) in one.addresses for column in one.columns) for one in filters
    )


ANSWERS: dict[str, Callable[[Index, Mapping[str, Any]], list[Row]]] = {
    f"v3/{name}": partial(_find_page, name) for name in COLUMNS
}

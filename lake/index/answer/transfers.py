"""Transfers and burns of jettons, and transfers of NFTs, from segments."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.index.answer.contracts import MOST_ROWS, address_of, pair_accounts
from tonlake.lake.index.declined import Declined

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
"""What each query is asked by: the columns of which one must have one of the addresses."""

_DIRECTIONS = {
    **dict.fromkeys(("source", "old_owner"), "outgoing"),
    **dict.fromkeys(("destination", "new_owner"), "incoming"),
}
"""Columns that count only where a parameter is true."""


class _Filter(NamedTuple):
    """Columns of which one must have one of the addresses."""

    columns: tuple[str, ...]
    addresses: set[AccountId]


_Place = tuple[int, int, int, "SegmentTable"]
"""Logical time, which table, number and table of a row."""


def _find_page(name: str, index: Index, bound: Mapping[str, Any]) -> list[Row]:
    filters = _list_filters(name, bound)
    lists = _list_numbers(index.segments.list_tables(name), filters)
    by_time, descending = bound["by_time"], bound["descending"]
    found: list[Row] = []
    most, read = bound["offset"] + bound["limit"], 0
    walks = [_walk(table, numbers, bound) for table, numbers in lists]
    merged = merge(*walks, key=itemgetter(0, 1, 2), reverse=descending)
    for _, places in groupby(merged, key=itemgetter(0)):
        if len(found) >= most and not by_time:
            break
        # A row stands twice where both of its ends are asked for.
        for (_, number), same in groupby(places, key=itemgetter(1, 2)):
            read += 1
            row = next(same)[3].read(number)
            if _passes(row, name, filters, bound):
                found.append(row)
        if read > MOST_ROWS:
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


def _walk(
    table: SegmentTable, numbers: Sequence[int], bound: Mapping[str, Any]
) -> Iterator[_Place]:
    """Yield rows, which stand by logical time, within a span of it, both ends included."""
    lt_of: Callable[[int], int] = table.order.__getitem__
    start, end = 0, len(numbers)
    if bound["start_lt"] is not None:
        start = bisect_left(numbers, bound["start_lt"], key=lt_of)
    if bound["end_lt"] is not None:
        end = bisect_right(numbers, bound["end_lt"], start, key=lt_of)
    for at in range(end - 1, start - 1, -1) if bound["descending"] else range(start, end):
        yield lt_of(numbers[at]), id(table), numbers[at], table


def _list_numbers(
    tables: Sequence[SegmentTable], filters: Sequence[_Filter]
) -> list[tuple[SegmentTable, list[int]]]:
    """Return the rows of the filter that fewest rows pass; without one all rows, if few."""
    if not filters:
        if sum(len(table.order) for table in tables) > MOST_ROWS:
            raise Declined
        return [
            (table, sorted(range(len(table.order)), key=table.order.__getitem__))
            for table in tables
        ]
    choices = [
        [
            (table, table.list_rows(column, account))
            for table in tables
            for column in one.columns
            for account in {account for _, account in one.addresses}
        ]
        for one in filters
    ]
    return min(choices, key=lambda choice: sum(len(numbers) for _, numbers in choice))


def _passes(row: Row, name: str, filters: Sequence[_Filter], bound: Mapping[str, Any]) -> bool:
    if name == "jetton_transfers" and row["aborted"]:
        return False
    if bound["start_utime"] is not None and row["now"] < bound["start_utime"]:
        return False
    if bound["end_utime"] is not None and row["now"] > bound["end_utime"]:
        return False
    return all(
        any(address_of(row, column) in one.addresses for column in one.columns) for one in filters
    )


ANSWERS: dict[str, Callable[[Index, Mapping[str, Any]], list[Row]]] = {
    f"v3/{name}": partial(_find_page, name) for name in COLUMNS
}

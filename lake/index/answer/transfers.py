"""Transfers and burns of jettons, and transfers of NFTs, from segments."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tonlake.lake.account import AccountId
from tonlake.lake.index.answer.contracts import address_of, pair_accounts
from tonlake.lake.index.index import Index
from tonlake.lake.index.page import bound, merge_walks, read_first, read_rows, walk
from tonlake.lake.index.segment.segment import SegmentTable

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


def _find_page(name: str, index: Index, asked: Mapping[str, Any]) -> list[Any]:
    filters = _list_filters(name, asked)
    descending, most = asked["descending"], asked["offset"] + asked["limit"]
    moment, unit = ("now", "utime") if asked["by_time"] else ("lt", "lt")
    span = bound(asked[f"start_{unit}"], asked[f"end_{unit}"])
    walks = [
        (table, walk(table, moment, span, _list_rows(table, filters), descending=descending))
        for table in index.current.tables(name)
    ]
    found = read_first(
        merge_walks(walks, descending=descending),
        lambda part: [row for row in read_rows(part) if _passes(row, name, filters, asked)],
        most,
    )
    sign = -1 if descending else 1
    account = address_of("account")
    found.sort(key=lambda row: (sign * row[moment], sign * row.lt, *account(row)))
    return found[asked["offset"] : most]


def _list_rows(table: SegmentTable, filters: Sequence[_Filter]) -> list[Sequence[int]]:
    """Return the rows that may pass each filter, in order."""
    return [
        sorted(
            {
                row
                for column in one.columns
                for account in {account for _, account in one.addresses}
                for row in table.find(column, account)
            }
        )
        for one in filters
    ]


def _list_filters(name: str, bound: Mapping[str, Any]) -> list[_Filter]:
    filters = []
    for prefix, columns in COLUMNS[name].items():
        if addresses := pair_accounts(bound, prefix):
            asked = (each for each in columns if bound.get(_DIRECTIONS.get(each, ""), True))
            filters.append(_Filter(tuple(asked), addresses))
    return filters


def _passes(
    row: Any,  # noqa: ANN401 - a row
    name: str,
    filters: Sequence[_Filter],
    bound: Mapping[str, Any],
) -> bool:
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
        any(address_of(column)(row) in one.addresses for column in one.columns) for one in filters
    )


ANSWERS: dict[str, Callable[[Index, Mapping[str, Any]], list[Any]]] = {
    f"v3/{name}": partial(_find_page, name) for name in COLUMNS
}

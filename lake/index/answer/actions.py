"""Actions of traces and of accounts, from decoded row groups."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.answer.window import bound_ends
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.rowgroup.predicate import AnyOf
from tonlake.lake.index.segment.ends import NO_LT
from tonlake.lake.schema.action import ACTION_ACCOUNTS, ACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tonlake.lake.index.index import Index
    from tonlake.lake.index.rowgroup.predicate import Bounds
    from tonlake.lake.index.rowgroup.selection import Selection

Row = dict[str, Any]

_KEYS = (
    *("trace_id", "action_id", "type", "ancestor_type", "mc_seqno"),
    *("end_lt", "end_utime", "trace_end_lt", "trace_end_utime"),
)


def list_actions(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/actions`` of some traces, of a masterchain block, or of a range."""
    if asked["trace_ids"]:
        return _list_of_traces(index, asked)
    if asked["action_ids"]:
        return _find_by_id(index, asked)
    if asked["tx_hashes"]:
        raise Declined
    mc_seqno = asked["mc_seqno"]
    most = asked["offset"] + asked["limit"]
    at_once = [({"mc_seqno": (mc_seqno, mc_seqno)}, True)]
    windows = bound_ends(index, asked) if mc_seqno is None else at_once
    for bounds, is_all in windows:
        found = index.select(ACTIONS.name, bounds)
        if len(found) < most and not is_all:
            continue
        # Rows of the window come before all others, so a full page is correct.
        near, keys = _find_page(found, _KEYS, asked)
        if len(keys) == most or is_all:
            return near.pick((key[_PLACE] for key in keys[asked["offset"] :]), ACTIONS.names)
    raise Declined


_PLACE = "place"
"""Position of a row in its selection, stored with the columns of the row."""


def _find_page(
    found: Selection, columns: Sequence[str], asked: Mapping[str, Any]
) -> tuple[Selection, list[Row]]:
    """Return the rows up to the end of a page, and the selection that they belong to.

    Rows far from its edge are left out if those near it are enough.
    """
    if isinstance(account := asked["account"], str):  # as bytes it has separate columns
        found = found.where("accounts", lambda accounts: account in accounts)
    size = most = asked["offset"] + asked["limit"]
    whole = {**asked, "offset": 0, "limit": most}
    edge = "trace_end_utime" if asked["by_time"] else "trace_end_lt"
    while True:
        near = found.nearest(edge, size, descending=asked["descending"])
        rows = [row | {_PLACE: place} for place, row in enumerate(near.rows(columns))]
        page = _cut_page(rows, whole)
        if len(page) == most or len(near) == len(found):
            return near, page
        if size == most:  # filters exclude much: apply the cheap ones first
            for name, fits in _list_filters(asked):
                found = found.where(name, fits)
        size *= 4


def _list_filters(asked: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    """Yield columns and predicates: filters of ``_cut_page`` that are cheaper here."""
    if asked["types"]:
        yield "type", set(asked["types"]).__contains__
    if asked["excluded"]:
        excluded = set(asked["excluded"])
        yield "type", lambda kind: kind not in excluded
    if asked["hidden_under"]:
        yield "ancestor_type", set(asked["hidden_under"]).isdisjoint


def _find_by_id(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    name = f"{ACTIONS.name}.action_id"
    found = (index.traces.find_seqnos(name, action_id) for action_id in asked["action_ids"])
    seqnos = set().union(*found)
    if not seqnos:
        return []
    bounds = {"mc_seqno": AnyOf(seqnos), "action_id": AnyOf(asked["action_ids"])}
    return _choose(index.gather(ACTIONS.name, ACTIONS.names, bounds), asked)


def _list_of_traces(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    ends = asked["start_lt"], asked["end_lt"]
    if None in ends:
        raise Declined
    bounds: dict[str, Bounds] = {"trace_end_lt": ends, "trace_id": AnyOf(asked["trace_ids"])}
    return _choose(index.gather(ACTIONS.name, ACTIONS.names, bounds), asked)


def _choose(rows: list[Row], asked: Mapping[str, Any]) -> list[Row]:
    """Return the page of rows that pass all filters."""
    traces, actions, hashes = (
        set(asked[name]) for name in ("trace_ids", "action_ids", "tx_hashes")
    )
    account = asked["account"]
    left = [
        row
        for row in rows
        if (not traces or row["trace_id"] in traces)
        and (not actions or row["action_id"] in actions)
        and (not hashes or not hashes.isdisjoint(row["tx_hashes"]))
        and (account is None or account in row["accounts"])
    ]
    return _cut_page(left, asked)


def list_account_keys(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/action_keys_of_account``."""
    bounds: dict[str, Bounds] = {
        name: (asked[name], asked[name]) for name in ("workchain", "account")
    }
    unit = "utime" if asked["by_time"] else "lt"
    first, last = asked[f"start_{unit}"], asked[f"end_{unit}"]
    if (first, last) != (None, None):
        span = 0 if first is None else first, NO_LT if last is None else last
        bounds[f"trace_end_{unit}"] = span
    found = index.select(ACTION_ACCOUNTS.name, bounds)
    # An account may have very many actions: the ends of their traces show which can be on the page.
    return _find_page(found, ACTION_ACCOUNTS.names, asked)[1][asked["offset"] :]


def find_by_key(index: Index, asked: Mapping[str, Any]) -> list[Row]:
    """Answer ``v3/actions_by_key``."""
    if not asked["action_ids"]:
        return []
    bounds = {
        "trace_end_lt": AnyOf(asked["trace_ends"]),
        "mc_seqno": AnyOf(asked["mc_seqnos"]),
        "action_id": AnyOf(asked["action_ids"]),
    }
    return index.gather(ACTIONS.name, ACTIONS.names, bounds)


def _cut_page(rows: list[Row], filters: Mapping[str, Any]) -> list[Row]:
    """Return the page of rows that pass the filters, in order."""
    types, excluded = set(filters["types"]), set(filters["excluded"])
    hidden_under = set(filters["hidden_under"])
    by_time, descending = filters["by_time"], filters["descending"]
    first, last = (
        "trace_end_utime" if by_time else "trace_end_lt",
        "end_utime" if by_time else "end_lt",
    )
    place_of = itemgetter(first, "trace_id", last, "action_id")
    found = [
        row
        for row in rows
        if (not types or row["type"] in types)
        and row["type"] not in excluded
        and hidden_under.isdisjoint(row["ancestor_type"])
        and _is_within(row["mc_seqno"], filters["mc_seqno"], filters["mc_seqno"])
        and _is_within(row["trace_end_utime"], filters["start_utime"], filters["end_utime"])
        and _is_within(row["trace_end_lt"], filters["start_lt"], filters["end_lt"])
    ]
    if filters["after_end"] is not None:
        names = ("after_end", "after_trace", "after_action", "after_id")
        after = tuple(filters[name] for name in names)
        found = [
            row for row in found if (place_of(row) < after if descending else place_of(row) > after)
        ]
    found.sort(key=place_of, reverse=descending)
    start = filters["offset"]
    return found[start : start + filters["limit"]]


def _is_within(value: int, first: int | None, last: int | None) -> bool:
    return (first is None or value >= first) and (last is None or value <= last)

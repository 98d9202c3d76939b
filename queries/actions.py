"""Actions of named traces and of accounts: from row groups that are kept decoded, or by query.

Every function gives what the named query in its docstring gives, from the same parameters.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lake.rowgroups import gather
from lake.schema.action import ACTION_ACCOUNTS, ACTIONS
from lake.wanted import AnyOf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lake.wanted import Bounds
    from queries.reader import Reader

Row = dict[str, Any]

_NO_LIMIT = (1 << 31) - 1

_key_of = itemgetter("trace_end_lt", "trace_id", "action_id")


def find_actions(reader: Reader, filters: Mapping[str, Any]) -> list[Row]:
    """Return a page of actions, as ``v3/actions``; those of traces between two ends are quick."""
    first, last = filters.get("start_lt"), filters.get("end_lt")
    found = None
    if filters["trace_ids"] and first is not None and last is not None:
        bounds = {"trace_end_lt": (first, last)}
        found = gather(reader.snapshot, ACTIONS.name, ACTIONS.names, bounds)
    if found is None:
        return reader.rows("v3/actions", **filters)
    traces, actions, ends = (
        set(filters[name]) for name in ("trace_ids", "action_ids", "tx_hashes")
    )
    account = filters.get("account")
    found = [
        row
        for row in found
        if row["trace_id"] in traces
        and (not actions or row["action_id"] in actions)
        and (not ends or not ends.isdisjoint(row["tx_hashes"]))
        and (account is None or account in row["accounts"])
    ]
    return _cut_page(found, filters)


def find_all_actions(
    reader: Reader, trace_ids: Sequence[bytes], ends: tuple[int, int], types: Sequence[str]
) -> list[Row]:
    """Return all actions of traces that are of some types and not hidden under one, in order.

    That is the order of their messages. ``ends`` are the least and the greatest end of the traces.
    """
    filters: Row = {
        "trace_ids": trace_ids,
        "action_ids": [],
        "tx_hashes": [],
        "start_lt": ends[0],
        "end_lt": ends[1],
        "types": types,
        "excluded": [],
        "hidden_under": types,
        "by_time": False,
        "descending": False,
        "limit": _NO_LIMIT,
        "offset": 0,
    }
    found = find_actions(reader, filters)
    return sorted(found, key=itemgetter("start_lt", "end_lt", "action_id"))


def find_account_actions(
    reader: Reader, workchain: int, account: bytes, filters: Mapping[str, Any]
) -> list[Row]:
    """Return a page of one account's actions, as ``v3/action_keys_of_account``.

    Their keys first: then only those parts of ``actions`` are read in which they are.
    """
    bounds = {"workchain": (workchain, workchain), "account": (account, account)}
    found = gather(reader.snapshot, ACTION_ACCOUNTS.name, ACTION_ACCOUNTS.names, bounds)
    if found is None:
        keys = reader.rows(
            "v3/action_keys_of_account", workchain=workchain, account=account, **filters
        )
    else:
        keys = _cut_page(found, filters)
    if not keys:
        return []
    by_key = {_key_of(row): row for row in _read_actions(reader, keys)}
    return [by_key[key] for key in map(_key_of, keys) if key in by_key]


def _read_actions(reader: Reader, keys: list[Row]) -> list[Row]:
    """Return the actions of keys, and maybe others, as ``v3/actions_by_key``."""
    ends = AnyOf(key["trace_end_lt"] for key in keys)
    action_ids = {key["action_id"] for key in keys}
    bounds: dict[str, Bounds] = {"trace_end_lt": ends}
    if "mc_seqno" in keys[0]:
        bounds["mc_seqno"] = AnyOf(key["mc_seqno"] for key in keys)
    rows = gather(reader.snapshot, ACTIONS.name, ACTIONS.names, bounds)
    if rows is None:
        return reader.rows("v3/actions_by_key", trace_ends=ends.values, action_ids=list(action_ids))
    return [row for row in rows if row["action_id"] in action_ids]


def _cut_page(rows: list[Row], filters: Mapping[str, Any]) -> list[Row]:
    """Return the page of rows that pass what the filters say of any action, in its order."""
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
        and _is_within(row["mc_seqno"], filters.get("mc_seqno"), filters.get("mc_seqno"))
        and _is_within(row["trace_end_utime"], filters.get("start_utime"), filters.get("end_utime"))
        and _is_within(row["trace_end_lt"], filters.get("start_lt"), filters.get("end_lt"))
    ]
    if filters.get("after_end") is not None:
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

"""Pages of actions are those that the named queries give, in their order."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pytest

from queries.actions import find_account_actions, find_actions, find_all_actions
from tests.queries.watching import watch

if TYPE_CHECKING:
    from queries.reader import Reader
    from tests.queries.watching import Watching

Row = dict[str, Any]
EVERYTHING: Row = {
    "types": [],
    "excluded": [],
    "hidden_under": [],
    "by_time": False,
    "descending": True,
    "limit": 1000,
    "offset": 0,
}
NOTHING: Row = {"trace_ids": [], "action_ids": [], "tx_hashes": []}


@pytest.fixture
def watched(reader: Reader) -> Watching:
    """The demo lake; what is asked for was asked for before."""
    watching = watch(reader)
    [row] = watching.rows("v3/actions", **EVERYTHING | NOTHING | {"limit": 1})
    for _ in range(2):
        find_actions(watching, _of_trace(row, EVERYTHING))
        find_account_actions(watching, 0, bytes(32), EVERYTHING)
    watching.asked.clear()
    return watching


def _of_trace(row: Row, filters: Row) -> Row:
    ends = {"start_lt": row["trace_end_lt"], "end_lt": row["trace_end_lt"]}
    return NOTHING | ends | filters | {"trace_ids": [row["trace_id"]]}


def _vary(rows: list[Row]) -> list[Row]:
    """Return filters of which each lets some of the rows pass, and some not."""
    types = sorted({row["type"] for row in rows})
    middle = rows[len(rows) // 2]
    varied: list[Row] = [
        {},
        {"types": types[:1]},
        {"excluded": types[:1]},
        {"hidden_under": types},
        {"limit": 2, "offset": 1},
        {"mc_seqno": middle["mc_seqno"]},
        {"start_utime": middle["trace_end_utime"]},
        {"end_utime": middle["trace_end_utime"]},
    ]
    for by_time, descending in product((False, True), repeat=2):
        ends = ("trace_end_utime", "end_utime") if by_time else ("trace_end_lt", "end_lt")
        varied += [
            {"by_time": by_time, "descending": descending},
            {
                "by_time": by_time,
                "descending": descending,
                "after_end": middle[ends[0]],
                "after_trace": middle["trace_id"],
                "after_action": middle[ends[1]],
                "after_id": middle["action_id"],
            },
        ]
    return varied


def test_actions_of_traces(watched: Watching, reader: Reader) -> None:
    rows = reader.rows("v3/actions", **EVERYTHING | NOTHING)
    traces: dict[bytes, list[Row]] = {}
    for row in rows:
        traces.setdefault(row["trace_id"], []).append(row)
    large = sorted(traces.values(), key=len)[-5:]
    for of_trace in [*large, next(iter(traces.values()))]:
        row = of_trace[0]
        narrow: list[Row] = [
            {"tx_hashes": row["tx_hashes"][:1]},
            {"action_ids": [row["action_id"]]},
            {"account": row["accounts"][0]},
        ]
        for change in [*_vary(of_trace), *narrow]:
            filters = _of_trace(row, EVERYTHING) | change
            assert find_actions(watched, filters) == reader.rows("v3/actions", **filters), change
    assert watched.asked == []
    assert find_actions(watched, EVERYTHING | NOTHING) == rows
    assert watched.asked == ["v3/actions"]


def test_all_actions_of_traces(watched: Watching, reader: Reader) -> None:
    rows = reader.rows("v3/actions", **EVERYTHING | NOTHING)
    types = sorted({row["type"] for row in rows})
    for some in (types, types[:1], types[1:]):
        ids = sorted({row["trace_id"] for row in rows})[::7]
        ends = [row["trace_end_lt"] for row in rows if row["trace_id"] in ids]
        found = find_all_actions(watched, ids, (min(ends), max(ends)), some)
        wanted = [
            row
            for row in rows
            if row["trace_id"] in ids
            and row["type"] in some
            and not set(some).intersection(row["ancestor_type"])
        ]
        wanted.sort(key=lambda row: (row["start_lt"], row["end_lt"], row["action_id"]))
        assert found == wanted
        assert found


def test_actions_of_accounts(watched: Watching, reader: Reader) -> None:
    keys = reader.snapshot.connect().execute(
        "select workchain, account, count(*) from action_accounts group by all order by all"
    )
    busy = sorted(keys.fetchall(), key=lambda key: key[2])
    for workchain, account, _count in [*busy[-3:], busy[0], (0, bytes(32), 0)]:
        whole = find_account_actions(watched, workchain, account, EVERYTHING)
        for change in _vary(whole) if whole else [{}]:
            filters = EVERYTHING | change
            wanted = reader.rows(
                "v3/action_keys_of_account", workchain=workchain, account=account, **filters
            )
            found = find_account_actions(watched, workchain, account, filters)
            names = ("trace_end_lt", "trace_id", "action_id")
            assert [{name: row[name] for name in names} for row in found] == wanted, change
    assert watched.asked == []


def test_actions_of_accounts_are_whole(watched: Watching, reader: Reader) -> None:
    rows = reader.rows("v3/actions", **EVERYTHING | NOTHING)
    by_id = {(row["trace_id"], row["action_id"]): row for row in rows}
    workchain, account = rows[0]["accounts"][0].split(":")
    found = find_account_actions(watched, int(workchain), bytes.fromhex(account), EVERYTHING)
    assert found
    assert found == [by_id[row["trace_id"], row["action_id"]] for row in found]
    ends = [(row["trace_end_lt"], row["trace_id"]) for row in found]
    assert all(left >= right for left, right in pairwise(ends))

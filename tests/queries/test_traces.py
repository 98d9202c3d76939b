"""Traces from look-ups are those that the named queries give."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from ingest.trace.rebuild import rebuild_traces
from lake.lookup.opening import open_lookups
from lake.lookup.rebuild import rebuild_lookups
from lake.settings import LakeSettings
from lake.snapshot import open_snapshot
from queries.exact import Slice
from queries.reader import Reader
from queries.traces import (
    find_adjacent,
    find_last_ends,
    find_trace_ids,
    find_traces,
    list_account_traces,
    read_members,
)
from tests.lake.chain import Chain, commit_chain

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SETTINGS = LakeSettings()
MEMBER = ("hash", "lt", "trace_id", "parent_hash")


@pytest.fixture(scope="module", params=["one run", "a run and memory", "memory"])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A lake with traces, some of which go on from a run to the next one."""
    lake, chain = tmp_path_factory.mktemp("traced") / "lake", Chain(11, accounts=5)
    for at in range(1, 25, 2):
        commit_chain(lake, chain, at, at + 1)
        if at == 11 and request.param == "a run and memory":
            rebuild_traces(lake, SETTINGS)
            rebuild_lookups(lake)
    rebuild_traces(lake, SETTINGS)
    if request.param == "one run":
        rebuild_lookups(lake)
    snapshot = open_snapshot(lake)
    return Reader(snapshot, snapshot.connect(), lookups=open_lookups(snapshot, SETTINGS))


@cache
def connect(reader: Reader) -> DuckDBPyConnection:
    """Open the snapshot once for all that is compared."""
    return reader.snapshot.connect()


def ask_queries(reader: Reader) -> Reader:
    return Reader(reader.snapshot, connect(reader))


def list_traces(reader: Reader) -> list[dict[str, Any]]:
    return reader.rows("v3/traces", limit=10**6)


def test_traces_of_transactions_and_messages(reader: Reader) -> None:
    plain = ask_queries(reader)
    connection = connect(reader)
    hashes = [row[0] for row in connection.execute("select hash from transactions").fetchall()]
    for tx_hash in [*hashes[::3], bytes(32)]:
        wanted = find_trace_ids(plain, tx_hashes=[tx_hash])
        assert find_trace_ids(reader, tx_hashes=[tx_hash]) == wanted
    text = "select msg_hash, coalesce(hash_norm, msg_hash) from messages"
    for stored, norm in connection.execute(text).fetchall()[::3]:
        wanted = find_trace_ids(plain, msg_hashes=[stored, norm])
        assert sorted(find_trace_ids(reader, msg_hashes=[stored, norm])) == sorted(wanted)


def test_complete_traces_are_found_and_others_left_to_the_queries(reader: Reader) -> None:
    traces = list_traces(reader)
    assert {row["state"] for row in traces} > {"complete"}
    complete = [row for row in traces if row["state"] == "complete"]
    for descending in (True, False):
        ids = [row["trace_id"] for row in complete]
        found = find_traces(reader, ids, Slice(10**6, 0, descending))
        assert found == (complete if descending else complete[::-1])
        assert find_traces(reader, ids, Slice(2, 1, descending)) == found[1:3]
    for row in traces:
        known = find_traces(reader, [row["trace_id"]], Slice(1))
        assert known == ([row] if row["state"] == "complete" else None)
    assert find_traces(ask_queries(reader), [], Slice(1)) is None


def test_ends_of_traces_are_told_where_all_are_complete(reader: Reader) -> None:
    traces = list_traces(reader)
    complete = [row for row in traces if row["state"] == "complete"]
    ends = [row["end_lt"] for row in complete]
    found = find_last_ends(reader, [row["trace_id"] for row in complete])
    stale = reader.lookups is not None and reader.lookups.stale_traces
    assert found == (None if stale else (min(ends), max(ends)))
    assert find_last_ends(reader, [row["trace_id"] for row in traces]) is None
    assert find_last_ends(reader, []) is None


def test_traces_of_accounts(reader: Reader) -> None:
    connection = connect(reader)
    text = "select distinct workchain, account from transactions"
    for workchain, account in [*connection.execute(text).fetchall(), (0, bytes(32))]:
        found = list_account_traces(reader, workchain, account)
        rows = reader.rows("v3/traces_of_account", workchain=workchain, account=account, limit=999)
        if reader.lookups is not None and reader.lookups.stale_traces:
            assert found is None
        else:
            assert found is not None
            assert sorted(found) == sorted(row["trace_id"] for row in rows)
    assert list_account_traces(ask_queries(reader), 0, bytes(32)) is None


def test_members_of_a_trace_with_their_parents(reader: Reader) -> None:
    traces = list_traces(reader)
    found, wanted = read_members(reader, traces), read_members(ask_queries(reader), traces)
    assert found.keys() == wanted.keys()
    assert any(member["parent_hash"] for members in wanted.values() for member in members)
    for trace_id, members in wanted.items():
        listed = [[member[name] for name in MEMBER] for member in found[trace_id]]
        assert listed == [[member[name] for name in MEMBER] for member in members]


@pytest.mark.parametrize("direction", [None, "in", "out"])
def test_transactions_next_to_one(reader: Reader, direction: str | None) -> None:
    plain = ask_queries(reader)
    connection = connect(reader)
    hashes = [row[0] for row in connection.execute("select hash from transactions").fetchall()]
    for tx_hash in [*hashes[::6], bytes(32)]:
        wanted = find_adjacent(plain, tx_hash, direction)
        found = find_adjacent(reader, tx_hash, direction)
        assert [(key["hash"], key["lt"]) for key in found] == [
            (key["hash"], key["lt"]) for key in wanted
        ]

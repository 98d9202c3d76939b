"""Look-ups give the same answers as the views, after any commits, rebuilds and compactions."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.chain import Chain, commit_chain, commit_made
from tonlake.lake.duck.connection import connect
from tonlake.lake.index.builder import rebuild
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.index import open_segments
from tonlake.lake.index.page.merge import (
    MAX_MERGED,
    MessageQuery,
    read_messages,
    read_page,
    read_timed_page,
)
from tonlake.lake.index.segment.record import (
    FACT_COLUMNS,
    MESSAGE_COLUMNS,
    STATE_COLUMNS,
    TRANSACTION_COLUMNS,
)
from tonlake.lake.index.segments import MAX_RANKED
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tonlake.lake.index.segments import Segments
    from tonlake.lake.log.snapshot import Snapshot

Row = dict[str, Any]
SETTINGS = LakeSettings()
PAGES = [(0, 1), (0, 5), (3, 4), (0, 1000), (1000, 2)]


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    with mock.patch.object(rebuild, "BLOCK_ROWS", 7):
        yield


@contextmanager
def temporary_lake() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder / "lake"
    finally:
        shutil.rmtree(folder)


STEPS = st.lists(
    st.tuples(st.sampled_from(["commit", "commit", "hole", "fill", "rebuild", "rebuild all"]),
              st.integers(1, 4)),
    min_size=1,
    max_size=7,
)  # fmt: skip


def take_steps(lake: Path, seed: int, steps: list[tuple[str, int]]) -> None:
    """Create a lake; blocks in a hole are committed last, out of order."""
    chain = Chain(seed)
    at = 1
    commit_chain(lake, chain, at, at + 1)
    at += 2
    late = []
    for step, count in steps:
        if step == "commit":
            commit_chain(lake, chain, at, at + count - 1)
            at += count
        elif step == "hole":
            late.append((at, at + count - 1, chain.make(at, at + count - 1)))
            at += count
        elif step == "fill":
            if late:
                commit_made(lake, *late.pop(0))
        else:
            rebuild_index(lake, everything=step == "rebuild all")


@given(seed=st.integers(0, 10**6), steps=STEPS)
@settings(max_examples=25)
def test_all_answers_equal_those_of_the_views(seed: int, steps: list[tuple[str, int]]) -> None:
    with temporary_lake() as lake:
        take_steps(lake, seed, steps)
        check_snapshot(open_snapshot(lake))


def check_snapshot(snapshot: Snapshot) -> None:
    lookups = open_segments(snapshot, SETTINGS)
    assert lookups is not None
    tables = read_tables(snapshot)
    check_transactions(lookups, tables)
    check_accounts(lookups, tables)
    check_blocks(lookups, tables)
    check_failed(lookups, tables)
    check_messages(lookups, tables)
    check_states(lookups, tables)


def read_tables(snapshot: Snapshot) -> dict[str, list[Row]]:
    asked = ("transactions", "messages", "account_states")
    connection = connect(snapshot, tables=asked)
    return {
        name: connection.table(name).to_arrow_table().to_pylist()
        for name in (*asked, "latest_account_states")
    }


def check_transactions(lookups: Segments, tables: dict[str, list[Row]]) -> None:
    states = {
        (row["workchain"], row["account"], row["hash"]): row for row in tables["account_states"]
    }
    hits = [lookups.find_transaction(row["hash"]) for row in tables["transactions"]]
    records = lookups.read_records([hit for hit in hits if hit is not None])
    assert len(records) == len(tables["transactions"])
    for row, record in zip(tables["transactions"], records, strict=True):
        fixed = ("workchain", "account", "lt", "hash", "now", "mc_seqno")
        for name in (*TRANSACTION_COLUMNS, *fixed, "account_state_hash_after"):
            assert record.row[name] == row[name], name
        messages = [line for line in tables["messages"] if line["tx_hash"] == row["hash"]]
        messages.sort(key=lambda line: (line["direction"], line["msg_index"]))
        for line, read in zip(messages, record.messages, strict=True):
            for name in (*MESSAGE_COLUMNS, "tx_hash", "tx_lt"):
                assert read[name] == line[name], name
        for name, found in (("before", record.before), ("after", record.after)):
            key = row["workchain"], row["account"], row[f"account_state_hash_{name}"]
            state = states.get(key)
            assert (found is None) == (state is None), name
            if state is not None:
                assert all(found[column] == state[column] for column in FACT_COLUMNS)
    assert lookups.find_transaction(bytes(32)) is None


def hashes_of(lookups: Segments, lists: Any, **page: Any) -> list[bytes]:
    return [record.row.hash for record in lookups.read_records(read_page(lists, **page))]


def in_order(rows: list[Row], *, descending: bool) -> list[bytes]:
    def order(row: Row) -> tuple[int, int, bytes]:
        return -row["lt"] if descending else row["lt"], row["workchain"], row["account"]

    return [row["hash"] for row in sorted(rows, key=order)]


def check_accounts(lookups: Segments, tables: dict[str, list[Row]]) -> None:
    accounts = {(row["workchain"], row["account"]) for row in tables["transactions"]}
    for workchain, account in [*accounts, (0, bytes(31) + b"\1"), (7, bytes(32))]:
        rows = [
            row
            for row in tables["transactions"]
            if (row["workchain"], row["account"]) == (workchain, account)
        ]
        lists = lookups.list_account((workchain, account))
        for descending in (True, False):
            wanted = in_order(rows, descending=descending)
            for offset, limit in PAGES:
                page = {"offset": offset, "limit": limit, "descending": descending}
                assert hashes_of(lookups, lists, **page) == wanted[offset : offset + limit]
        lts = sorted(row["lt"] for row in rows) or [5]
        times = sorted(row["now"] for row in rows) or [5]
        cut = [listed.cut(lts[0] + 1, lts[-1]) for listed in lists]
        inside = [row for row in rows if lts[0] + 1 <= row["lt"] <= lts[-1]]
        whole = {"offset": 0, "limit": 1000, "descending": True}
        assert hashes_of(lookups, cut, **whole) == in_order(inside, descending=True)
        cut = [listed.cut(times[0], times[-1] - 1, by_time=True) for listed in lists]
        inside = [row for row in rows if times[0] <= row["now"] <= times[-1] - 1]
        assert hashes_of(lookups, cut, **whole) == in_order(inside, descending=True)


def check_blocks(lookups: Segments, tables: dict[str, list[Row]]) -> None:
    for mc_seqno in {row["mc_seqno"] for row in tables["transactions"]} | {10**6}:
        rows = [row for row in tables["transactions"] if row["mc_seqno"] == mc_seqno]
        for descending in (True, False):
            wanted = in_order(rows, descending=descending)
            for offset, limit in PAGES:
                lists = lookups.list_block(mc_seqno)
                page = {"offset": offset, "limit": limit, "descending": descending}
                assert hashes_of(lookups, lists, **page) == wanted[offset : offset + limit]


def check_failed(lookups: Segments, tables: dict[str, list[Row]]) -> None:
    times = sorted(row["now"] for row in tables["transactions"]) or [5]
    for first, last in ((None, None), (times[0] + 1, None), (times[0], times[-1] - 1), (7, 6)):
        rows = [
            row
            for row in tables["transactions"]
            if row["aborted"]
            and (first is None or row["now"] >= first)
            and (last is None or row["now"] <= last)
        ]
        lists = lookups.list_failed(first, last)
        for sign in (1, -1):
            rows.sort(
                key=lambda row, sign=sign: (  # type: ignore[misc]
                    *(sign * row["now"], sign * row["lt"]),
                    *(row["workchain"], row["account"]),
                )
            )
            for offset, limit in PAGES:
                hits = read_timed_page(lists, descending=sign < 0, offset=offset, limit=limit)
                found = [record.row.hash for record in lookups.read_records(hits)]
                assert found == [row["hash"] for row in rows[offset : offset + limit]]
    with pytest.raises(Declined):
        read_timed_page(lists, descending=True, offset=MAX_MERGED, limit=1)


def message_order(rows: list[Row], *, descending: bool) -> list[bytes]:
    none = 1 << 63
    order = {
        row["msg_hash"]: (none if row["created_lt"] is None else row["created_lt"], row["msg_hash"])
        for row in rows
    }
    return sorted(order, key=lambda msg_hash: order[msg_hash], reverse=descending)


def check_messages(lookups: Segments, tables: dict[str, list[Row]]) -> None:
    messages = tables["messages"]
    for wanted in {row["msg_hash"] for row in messages} | {row["hash_norm"] for row in messages}:
        if wanted is not None:
            found = {(line.tx_hash, line.direction, line.msg_index, line.msg_hash)
                     for line in lookups.find_messages(wanted)}  # fmt: skip
            assert found == {
                (row["tx_hash"], row["direction"], row["msg_index"], row["msg_hash"])
                for row in messages
                if wanted in (row["msg_hash"], row["hash_norm"])
            }
    opcodes = {row["opcode"] for row in messages} - {None} | {77}
    for descending in (True, False):
        for offset, limit in PAGES:
            page: dict[str, Any] = {"offset": offset, "limit": limit, "descending": descending}
            for opcode in opcodes:
                rows = [row for row in messages if row["opcode"] == opcode]
                order = message_order(rows, descending=descending)[offset : offset + limit]
                query = MessageQuery("opcode", opcode, **page)
                found_page = read_messages(lookups.segments, query)
                assert [line.msg_hash for line in found_page] == order
            for body_hash in {row["body_hash"] for row in messages}:
                rows = [row for row in messages if row["body_hash"] == body_hash]
                order = message_order(rows, descending=descending)[offset : offset + limit]
                query = MessageQuery("body_hash", body_hash, **page)
                found_page = read_messages(lookups.segments, query)
                assert [line.msg_hash for line in found_page] == order


def check_states(lookups: Segments, tables: dict[str, list[Row]]) -> None:
    newest = tables["latest_account_states"]
    accounts = [(row["workchain"], row["account"]) for row in newest]
    *states, unknown = lookups.newest_states([*accounts, (0, bytes(31) + b"\1")])
    for row, state in zip(newest, states, strict=True):
        assert state is not None
        assert all(state[name] == row[name] for name in STATE_COLUMNS)
    assert unknown is None
    ranked = sorted((-row["balance"], row["workchain"], row["account"]) for row in newest)
    wanted = [(-balance, workchain, account) for balance, workchain, account in ranked]
    for offset, limit in PAGES:
        assert lookups.rank_accounts(offset, limit) == wanted[offset : offset + limit]
    assert lookups.rank_accounts(0, 1000) == wanted
    if len(lookups.segments) > 1:
        with pytest.raises(Declined):
            lookups.rank_accounts(MAX_RANKED, 1)


def test_pages_of_many_runs_join_without_gap_or_overlap(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(5, accounts=4)
    for at in range(1, 40):
        commit_chain(lake, chain, at, at)
        if at in (20, 30):
            rebuild_index(lake)
    lookups = open_segments(open_snapshot(lake), SETTINGS)
    assert lookups is not None
    assert len(lookups.segments) > 3
    for workchain, account in chain.accounts:
        lists = lookups.list_account((workchain, account))
        whole = hashes_of(lookups, lists, descending=True, offset=0, limit=10**6)
        pages = [
            tx_hash
            for offset in range(0, len(whole) + 7, 7)
            for tx_hash in hashes_of(lookups, lists, descending=True, offset=offset, limit=7)
        ]
        assert pages == whole
        assert len(whole) > 7


def test_too_much_without_a_segment_is_left_to_the_queries(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    commit_chain(lake, Chain(1), 1, 20)
    snapshot = open_snapshot(lake)
    few = LakeSettings(index_memory_rows=1)
    assert open_segments(snapshot, few) is None
    assert open_segments(snapshot, SETTINGS) is not None
    rebuild_index(lake)
    assert open_segments(open_snapshot(lake), few) is not None


@pytest.mark.parametrize("seed", range(3))
def test_an_earlier_snapshot_shows_nothing_of_later_blocks(tmp_path: Path, seed: int) -> None:
    lake, chain = tmp_path / "lake", Chain(seed)
    for at in range(1, 13, 3):
        commit_chain(lake, chain, at, at + 2)
        if (at + seed) % 2:
            rebuild_index(lake, everything=at > 5)
    for number in range(1, open_snapshot(lake).number + 1):
        check_snapshot(open_snapshot(lake, number))

"""Named queries: every one runs, invalid questions and slow answers are refused."""

import shutil
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import tonlake.queries.loader
from tests.damage import flip_file
from tests.lake.opened import open_views
from tests.lake.rows import commit_rows, flip_value
from tonlake.api.text.encoding import Address, render_friendly
from tonlake.lake.duck.limit import PAGES
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.snapshot import FileWatch, open_snapshot
from tonlake.lake.schema import TABLES
from tonlake.queries.errors import ParameterMismatch, QueryTimeout, QueryTooLarge, QueryUnknown
from tonlake.queries.loader import REQUIRED, NamedQuery, load_queries, parse_query
from tonlake.queries.reader import Reader

SAMPLES: dict[str, Any] = {
    "boolean": True,
    "integer": 1,
    "bigint": 1,
    "text": "in",
    "blob": bytes(32),
    "address": "0:" + "00" * 32,
    "date": date(2026, 11, 21),
    "timestamp": datetime(2026, 11, 21, 4, 10),  # noqa: DTZ001
    "integer[]": [0],
    "bigint[]": [1],
    "text[]": ["in"],
    "blob[]": [bytes(32)],
}
INJECTIONS = (
    "' or 1=1 --",
    "\\'; select 1; --",
    "$1",
    "\x00",
)
QUERIES = sorted(load_queries().values(), key=lambda query: query.name)


def test_the_end_of_an_address_is_compared_before_rows_are_counted(reader: Reader) -> None:
    asked = {"workchain": 0, "low": bytes(32), "high": b"\xff" * 32, "first": 0}
    flags = {"bounceable": False, "test_only": True}
    accounts = [
        row["account"]
        for row in reader.rows("explorer/accounts_between", **asked, **flags, suffix="", limit=1000)
    ]
    for account in (accounts[0], accounts[-1]):
        end = render_friendly(Address(0, account), **flags)[-7:]
        found = reader.rows("explorer/accounts_between", **asked, **flags, suffix=end, limit=1)
        assert [row["account"] for row in found] == [account]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_query_runs(reader: Reader, query: NamedQuery) -> None:
    required = {
        name: SAMPLES[item.type]
        for name, item in query.parameters.items()
        if item.default is REQUIRED
    }
    reader.rows(query.name, **required)
    everything = {name: SAMPLES[item.type] for name, item in query.parameters.items()}
    reader.rows(query.name, **everything)


def _sample(kind: str, text: str) -> object:
    """Return a value of a parameter's type that carries ``text`` wherever it can."""
    carriers = {"text": text, "blob": text.encode(), "blob[]": [text.encode()], "text[]": [text]}
    return carriers.get(kind, SAMPLES[kind])


@pytest.mark.parametrize(
    "query",
    [
        query
        for query in QUERIES
        if any(item.type.startswith(("text", "blob")) for item in query.parameters.values())
    ],
    ids=lambda query: query.name,
)
def test_no_text_is_taken_for_sql(reader: Reader, query: NamedQuery) -> None:
    harmless, *found = (
        reader.rows(
            query.name,
            **{name: _sample(item.type, text) for name, item in query.parameters.items()},
        )
        for text in ("nothing", *INJECTIONS)
    )
    assert all(rows == harmless for rows in found)
    assert "sort" in query.parameters or harmless == []
    assert reader.one("v3/blocks", limit=1) is not None


def test_rows_have_the_names_of_the_columns(reader: Reader) -> None:
    rows = reader.rows("v3/blocks", workchain=-1, descending=False, limit=2)
    assert [row["seqno"] for row in rows] == [1, 2]
    assert reader.one("v3/blocks", workchain=-1, seqno=1, limit=1) == rows[0]
    assert reader.one("v3/blocks", workchain=-1, seqno=0, limit=1) is None


def test_a_wrong_question_is_refused(reader: Reader) -> None:
    with pytest.raises(QueryUnknown, match="v3/nothing"):
        reader.rows("v3/nothing")
    with pytest.raises(ParameterMismatch, match="needs limit and takes no x"):
        reader.rows("v3/blocks", x=1)


def test_a_slow_answer_is_interrupted(demo_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = parse_query(
        "slow",
        "-- Slow.\n-- returns: n\n"
        "select count(*) as n from range(10000000) as a, range(10000000) as b\n"
        "where a.range % 7 <> b.range % 11\n",
    )
    monkeypatch.setattr(
        tonlake.queries.loader, "load_queries", lambda: {**load_queries(), "slow": slow}
    )
    snapshot = open_snapshot(demo_lake)
    views = open_views(snapshot)
    with pytest.raises(QueryTimeout, match="slow took longer than 100 ms"):
        Reader(snapshot, views, timeout_ms=100).rows("slow")
    assert Reader(snapshot, views).rows("v3/blocks", limit=1)


def test_damage_is_named_where_it_is_met(demo_lake: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_lake, tmp_path, dirs_exist_ok=True)
    damaged = next((tmp_path / "messages").rglob("*.parquet"))
    flip_file(damaged)
    snapshot = open_snapshot(tmp_path)
    reader = Reader(snapshot, open_views(snapshot))
    assert reader.rows("v3/blocks", limit=1)
    with pytest.raises(LakeCorrupt, match="messages/day="):
        reader.rows("v3/trace_ids_of_messages", msg_hashes=[bytes(32)])


def test_a_value_that_changes_under_an_open_snapshot_is_not_returned(tmp_path: Path) -> None:
    """A plain file decodes with a flipped bit; compared just before, few files are all the same."""
    commit_rows(tmp_path, 1, 4, tables=["blocks"])
    snapshot = open_snapshot(tmp_path)
    seconds = iter(range(100))
    snapshot.watch = FileWatch(tmp_path, snapshot.files, lambda: next(seconds))
    reader = Reader(snapshot, open_views(snapshot))
    root_hash = reader.rows("v3/blocks", limit=1)[0]["root_hash"]
    [file] = snapshot.files["blocks"]
    flip_value(tmp_path / file.path, root_hash)
    with pytest.raises(LakeCorrupt, match=file.path):
        reader.rows("v3/blocks", limit=1)


def test_a_file_that_is_gone_is_named_once_it_is_read(tmp_path: Path) -> None:
    commit_rows(tmp_path, 1, 4, tables=["blocks"])
    snapshot = open_snapshot(tmp_path)
    views = open_views(snapshot)
    [file] = snapshot.files["blocks"]
    (tmp_path / file.path).unlink()
    named = rf"{file.path}.*\(No such file or directory\)"
    with pytest.raises(LakeCorrupt, match=named):
        Reader(snapshot, views).rows("v3/blocks", limit=1)
    with pytest.raises(LakeCorrupt, match=named):
        Reader(snapshot, views).ask("from blocks", {})
    assert snapshot.watch.damaged


def test_a_page_that_would_read_too_much_is_refused(demo_lake: Path) -> None:
    snapshot = open_snapshot(demo_lake)
    views, statement = open_views(snapshot), "select min(lt), max(lt), count(*) from transactions"
    views.provide(statement)
    ((first, last, count),) = views.lend(snapshot).execute(statement).fetchall()
    reader = Reader(snapshot, views, max_rows=count - 1)
    with pytest.raises(QueryTooLarge, match=f"{count} rows, more than.*start_lt and end_lt"):
        reader.rows("v3/transaction_keys", limit=1)
    with pytest.raises(QueryTooLarge, match=r"narrow it by .*mc_seqno"):
        reader.table("v3/transaction_keys", start_lt=first, limit=1)
    assert reader.rows("v3/transaction_keys", start_lt=last + 1, limit=1) == []
    assert reader.rows("v3/transaction_keys", mc_seqno=10**6, limit=1) == []
    hashes = {"hashes": [bytes(32)]}
    assert reader.rows("v3/transaction_keys", **hashes, limit=1) == []
    assert Reader(snapshot, views).rows("v3/transaction_keys", limit=1)


def test_a_page_of_few_rows_needs_no_narrowing(demo_lake: Path) -> None:
    snapshot = open_snapshot(demo_lake)
    rows = sum(file.rows for file in snapshot.files["messages"])
    assert Reader(snapshot, open_views(snapshot), max_rows=rows).rows("v3/messages", limit=1)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_limit_of_rows_is_of_columns_and_parameters_that_exist(name: str) -> None:
    work, query = PAGES[name], load_queries()[name]
    columns = {work.utime, work.lt, *work.exact.values()}
    assert columns <= set(TABLES[work.table].names)
    assert {*work.exact, *work.hashes, "limit"} <= query.parameters.keys()

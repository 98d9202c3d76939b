"""Views without the parts that a statement does not read give the same answers."""

from pathlib import Path

import duckdb
import pytest
from duckdb import DuckDBPyConnection

import tonlake
from tests.lake.opened import open_views
from tonlake.lake.duck.connection import SnapshotViews, connect, read_bases, read_sql
from tonlake.lake.duck.part import (
    FEW,
    OF_TRACE,
    PAIRED,
    PARTS,
    TRACE,
    VIEWS_IN_PARTS,
    cut_parts,
    list_empty,
    list_unread,
)
from tonlake.lake.errors import QueryError
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema.dictionary import VIEWS

READING_ALL = f"""
from v_messages
select * from v_messages
select v.* from v_messages as v
select v from v_messages as v
select count(v_messages) from v_messages
select columns('k.*') from v_messages
select kind from v_messages order by *
select x.kind from (from v_messages) as x
select kind from v_messages natural join messages
with m as (from v_messages) select m from m
summarize v_messages
pivot v_messages on kind using count(tx_lt)
from (pivot v_messages on kind in ('int') using count(tx_lt))
select kind from each_message('v_messages')
select msg_hash, opcode_nam from v_messages
select {", ".join(map(min, PARTS.values()))} from v_swaps
select kind from messages
"""  # noqa: S608 - ours


CUT_VIEWS = sorted(VIEWS_IN_PARTS & {*VIEWS})
OF_AN_ITEM = f"select day from v_nft_events where item = '0:{'A' * 64}'"  # noqa: S608 - ours
COMMENTED = set(PARTS) - {"body", "comment", "looked_up"}
TRACED = set(PARTS) - {"trace", "traced", "looked_up", "edge", "by_trace", "joined_trace"}


@pytest.mark.parametrize("statement", READING_ALL.strip().splitlines())
def test_what_may_read_every_column_reads_whole_views(statement: str) -> None:
    views = VIEWS_IN_PARTS if "v_" in statement else ()
    assert list_unread(duckdb.connect(), statement, views) == ()


@pytest.mark.parametrize(
    ("statement", "unread"),
    [
        ("select count(*), sum(amount) / 2 from v_messages", set(PARTS)),
        ("from v_messages select kind, count(*) group by all order by all", set(PARTS)),
        ("from v_messages select kind where sender_id = ton_account('x')", {*PARTS, FEW, PAIRED}),
        ("select * from v_messages as v where v.tx_hash = $hash", {FEW}),
        ("explain analyze select m.amount * 2 as n from v_messages m order by n", set(PARTS)),
        ("select day from v_messages where Comment = 'hi'", COMMENTED),
        ("select kind from v_messages where trace_id = $id", {*TRACED, TRACE, FEW}),
        ("select * from v_messages where trace_id = ton_hash('x')", {TRACE, FEW, OF_TRACE}),
        ("from v_messages where day > 1 or trace_id = ton_hash('x')", {TRACE, FEW}),
        ("from v_transfers select time where kind = 'ton' and amount > 1", {*PARTS, "token"}),
        ("from v_transfers t join blocks using (day) where t.kind = 'ton'", {"token"}),
        ("from v_nft_events where event = 'minted' and item = 'x'", {"moved"}),
        (OF_AN_ITEM, {*PARTS} - {"minted", "ends"}),
        ("from v_nft_events where event = 'minted' union from v_nft_sales", set()),
    ],
)
def test_parts_whose_columns_are_not_named_are_unread(statement: str, unread: set[str]) -> None:
    assert set(list_unread(duckdb.connect(), statement, ["v_messages"])) == unread


def list_cuts() -> list[tuple[str, tuple[str, ...]]]:
    """Return views with each part, or all, to leave out; one of those that give the same SQL."""
    made: dict[tuple[str, str], tuple[str, ...]] = {}
    for view in CUT_VIEWS:
        read = "".join(map(read_sql, sorted({view, *read_bases(view)} & VIEWS_IN_PARTS)))
        for cut in ((part,) for part in PARTS):
            made.setdefault((view, cut_parts(read, cut)), cut)
        made[view, cut_parts(read, PARTS)] = tuple(PARTS)
    return [(view, cut) for (view, _), cut in made.items()]


@pytest.fixture(scope="module")
def whole(connection: DuckDBPyConnection) -> DuckDBPyConnection:
    """A database with the rows of each view in parts, as ``whole_<view>``."""
    for view in CUT_VIEWS:
        connection.execute(f"create temp table whole_{view} as from {view}")
    return connection


@pytest.fixture(scope="module")
def shared(snapshot: Snapshot) -> SnapshotViews:
    return open_views(snapshot)


@pytest.mark.parametrize(("view", "cut"), list_cuts())
def test_the_other_columns_are_the_same(
    shared: SnapshotViews, whole: DuckDBPyConnection, view: str, cut: tuple[str, ...]
) -> None:
    gone = {name for part in cut for name in PARTS[part]}
    names = [column.name for column in VIEWS[view].columns if column.name not in gone]
    read = [name for part, columns in PARTS.items() if part not in cut for name in columns]
    # Names in a comment count as read.
    shown = ", ".join(names)
    statement = f"select {shown} from {view} order by {shown} -- {read}"  # noqa: S608 - ours
    shorter = shared.lend(shared)
    shared.provide(statement, shorter)
    rows = whole.execute(statement.replace(f"from {view}", f"from whole_{view}"))
    assert shorter.execute(statement).fetchall() == rows.fetchall()
    known = set(shorter.sql(f"from {view}").columns)
    assert {*names} <= known <= {column.name for column in VIEWS[view].columns}


def test_a_part_without_rows_is_left_out(snapshot: Snapshot) -> None:
    assert list_empty(snapshot.files) == {"moved"}
    assert list_empty({**snapshot.files, "nft_sales": snapshot.files["nft_items"]}) == set()
    connection = connect(snapshot)
    rows = connection.execute("from v_nft_events order by all").fetchall()
    text = read_sql("v_nft_events")
    assert "from moved" not in cut_parts(text, empty=["moved"])
    connection.execute(cut_parts(text))
    assert "from moved" in cut_parts(text)
    assert rows
    assert connection.execute("from v_nft_events order by all").fetchall() == rows


@pytest.mark.parametrize(
    ("view", "key"),
    [
        ("v_messages", "sender_id"),
        ("v_messages", "recipient_id"),
        ("v_messages", "trace_id"),
        *(("v_transfers", key) for key in ("sender_id", "trace_id")),
        *(("v_jetton_transfers", key) for key in ("recipient_id", "trace_id")),
        ("decoded_messages", "source"),
        ("v_transactions", "account"),
        ("v_transactions", "trace_id"),
        ("traced_transactions", "trace_id"),
    ],
)
def test_the_rows_of_one_account_or_trace_are_the_same(
    snapshot: Snapshot, connection: DuckDBPyConnection, view: str, key: str
) -> None:
    busiest = f"""select hex({key}) from {view} where {key} is not null
        group by all order by count(*) desc limit 1"""  # noqa: S608 - ours
    account = connection.execute(busiest).fetchall()[0][0]
    statement = f"select * from {view} where {key} = unhex('{account}') order by all"  # noqa: S608 - ours
    asked = {FEW, TRACE} if key == "trace_id" else {FEW}
    asked |= {OF_TRACE if key == "trace_id" else PAIRED} if view == "v_messages" else set()
    assert {*list_unread(connection, statement, [view])} == asked
    rows = connect(snapshot, statement=statement).execute(statement).fetchall()
    assert len(rows) > 3
    assert rows == connection.execute(statement).fetchall()


def test_statements_take_turns_on_one_lake(demo_lake: Path, connection: DuckDBPyConnection) -> None:
    shared = tonlake.open(demo_lake)
    for statement in (
        "select count(*), sum(amount) from v_messages",
        "select * from v_messages order by msg_hash",
        "select count(trace_id) from v_messages join traces using (trace_id)",
        "select max(fee), count(*) from v_transactions join blocks using (mc_seqno)",
        "select sum(tx_count) from blocks",
        "select date, fees, swaps from v_daily order by date",
        "select sum(amount_in), count(*) from v_swaps join v_daily on date = time::date",
        "select comment, count(*) from v_transfers group by all order by 1",
        "select count(*) from v_transfers",
    ) * 2:
        assert shared.sql(statement).fetchall() == connection.execute(statement).fetchall()
    with pytest.raises(QueryError, match="opcode_name"):
        shared.sql("select opcode_nam from v_messages")

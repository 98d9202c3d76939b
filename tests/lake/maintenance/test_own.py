"""User-defined tables equal their statements over the whole lake, whatever happened to it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from tests import commands
from tests.lake.rows import commit_rows, make_tables
from tests.patience import wait_for
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.duck.connection import connect
from tonlake.lake.duck.own import (
    OwnTable,
    Per,
    TableFilter,
    ask_table,
    read_definitions,
    read_own_state,
    write_definitions,
)
from tonlake.lake.duck.views import write_views
from tonlake.lake.errors import LakeCorrupt, LakeNotFound, QueryError, TableInvalid
from tonlake.lake.log.place import Derivation, NewFile, list_files, read_place
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogState, read_state
from tonlake.lake.maintenance import own
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.own import Refresher, add_table, refresh_tables, remove_table
from tonlake.lake.maintenance.removal import undo_after
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import MESSAGE_BODIES
from tonlake.lake.settings import LakeSettings

SETTINGS = LakeSettings(orphan_grace_s=0, row_group_rows=1000)
PER_DAY = """
    select messages.day, kind, count(*) as messages, sum(value) as total,
        count(decoded_opcode) as named
    from messages
    left join message_bodies using (body_hash, mc_seqno)
    group by all
"""
PER_COMMIT = "select tx_hash, msg_index, direction, value from messages where value > 0"
BODIES = "select day, count(*) as n, count(decoded) as m from message_bodies group by all"
TABLES: dict[str, tuple[str, Per]] = {
    "kinds": (PER_DAY, "day"),
    "paid": (PER_COMMIT, "commit"),
    "bodies": (BODIES, "day"),
}
NAMES = ("blocks", "transactions", "messages", "message_bodies")
UNDO_EVERY = 20


def commit(lake: Path, at: int, seed: int) -> None:
    day = f"2024-01-{1 + at // 25:02}"
    commit_rows(lake, at, at, seed=seed, rows=4, tables=NAMES, day=day)


def check(lake: Path) -> None:
    """Compare every table with its statement over the whole lake."""
    read = [*TABLES, *(statement for statement, _per in TABLES.values())]
    connection = connect(open_snapshot(lake), SETTINGS, statement=" ".join(read))
    for name, (statement, _per) in TABLES.items():
        kept = connection.sql(f"from {name} order by all").fetchall()
        assert kept == connection.sql(f"from ({statement}) order by all").fetchall(), name
        assert kept


def rebuild_bodies(lake: Path, last: int) -> None:
    """Replace the bodies of two commits, as a rebuild does."""

    def derive(state: LogState) -> Derivation:
        old = list_files(state, MESSAGE_BODIES.name)[-2:]
        places = [read_place(file.path) for file in old]
        files = [
            NewFile(
                MESSAGE_BODIES.name,
                place,
                make_tables(place.first, place.last, seed=last, rows=3, names=NAMES)[
                    MESSAGE_BODIES.name
                ],
            )
            for place in places
        ]
        return Derivation(files, frozenset(file.path for file in old))

    assert commit_derived(lake, SETTINGS, derive) is not None


@pytest.mark.parametrize("commits", [24, pytest.param(200, marks=pytest.mark.long)])
def test_after_commits_undos_merges_and_a_rebuild(tmp_path: Path, commits: int) -> None:
    lake, at = tmp_path / "lake", 1
    commit(lake, at, 0)
    for name, (statement, per) in TABLES.items():
        add_table(lake, OwnTable(name, statement, per), SETTINGS)
    for number in range(1, commits + 1):
        at += 1
        commit(lake, at, number)
        if number % UNDO_EVERY == 0:
            at -= 3
            undone = undo_after(
                lake, at, SETTINGS, max_mc_blocks=10, source={}, reopen=lambda *_given: ()
            )
            assert undone is not None
        if number % 33 == 0:
            compact_lake(lake, SETTINGS)
        if number % 13 == 0:
            states = refresh_tables(lake, SETTINGS)
            assert not [state.error for state in states.values() if state.error]
            check(lake)
    assert len(open_snapshot(lake).state.undoings) == commits // UNDO_EVERY
    rebuild_bodies(lake, commits)
    refresh_tables(lake, SETTINGS)
    check(lake)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    for at in range(1, 60, 10):
        commit(folder, at, at)
    return folder


def test_only_what_changed_is_made_again(lake: Path) -> None:
    add_table(lake, OwnTable("kinds", PER_DAY, "day"), SETTINGS)
    before = read_own_state(lake, "kinds").parts
    commit(lake, 60, 60)
    made: list[int] = []
    refresh_tables(lake, SETTINGS, on_part=lambda _done, all_parts: made.append(all_parts))
    after = read_own_state(lake, "kinds").parts
    assert made == [1]
    assert {key for key in after if after[key] != before.get(key)} == {"2024-01-03"}
    assert refresh_tables(lake, SETTINGS)["kinds"].parts == after
    files = {path.relative_to(lake).as_posix() for path in (lake / "_tables").rglob("*.parquet")}
    assert files == {part.path for part in after.values()}
    for part in after.values():
        assert pq.read_metadata(lake / part.path).num_rows == part.rows


@pytest.mark.parametrize(
    ("name", "statement", "error", "complaint"),
    [
        ("messages", PER_DAY, TableInvalid, "already"),
        ("Kinds", PER_DAY, TableInvalid, "is not a table name"),
        ("../kinds", PER_DAY, TableInvalid, "is not a table name"),
        ("kinds", "select 1 as a", TableInvalid, "reads no table"),
        ("kinds", "select nothing from messages", QueryError, "nothing"),
        ("kinds", "select kind, kind from messages", QueryError, "distinct column names"),
        ("kinds", "create table t as from messages", QueryError, "statements that read"),
        ("kinds", "copy messages to 'x.csv'", QueryError, "statements that read"),
        ("kinds", "from messages, read_csv('/etc/passwd')", QueryError, "passwd"),
    ],
)
def test_what_cannot_be_added(
    lake: Path, name: str, statement: str, error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        add_table(lake, OwnTable(name, statement, "day"), SETTINGS)
    assert not read_definitions(lake)


def test_one_that_fails_keeps_its_rows_and_stops_nothing(lake: Path) -> None:
    picky = "select case when count(*) > 0 then error('many') end as a from messages"
    add_table(lake, OwnTable("kinds", PER_DAY, "day"), SETTINGS)
    with pytest.raises(QueryError, match="many"):
        add_table(lake, OwnTable("picky", picky, "day"), SETTINGS)
    fine = "select count(*) as n from messages"
    add_table(lake, OwnTable("picky", fine, "day"), SETTINGS)
    tables = [*read_definitions(lake).values(), OwnTable("broken", picky, "day")]
    with refreshing(lake, *tables) as (kept, failures):
        for at in (60, 61):
            commit(lake, at, at)
            kept.wake()
            wait_for(lambda: read_own_state(lake, "kinds").commit == open_snapshot(lake).number)
        wait_for(lambda: bool(failures))
    assert failures == [failure for failure in failures if "table broken" in failure] != []
    state = read_own_state(lake, "broken")
    assert (state.error is not None, state.parts) == (True, {})
    listed = commands.run("status", "--lake", lake)
    assert "User-defined table broken" in listed.output
    assert "failed since" in listed.output


def running(kept: Refresher) -> int:
    """Return the id of the process; 0 if it is not running."""
    process = None if kept._running is None else kept._running[0].process
    return 0 if process is None or process.poll() is not None else process.pid


KINDS = OwnTable("kinds", PER_DAY, "day")
KILLED = "the refresher of user-defined tables ended with code -9"


@contextmanager
def refreshing(lake: Path, *tables: OwnTable) -> Iterator[tuple[Refresher, list[str]]]:
    """Refresh tables in a process, and note what it reports."""
    write_definitions(lake, tables)
    failures: list[str] = []
    with closing(Refresher(lake, SETTINGS, failures.append)) as kept:
        yield kept, failures


def is_started(kept: Refresher) -> bool:
    kept.wake()
    return bool(running(kept))


def end(kept: Refresher, number: signal.Signals) -> None:
    """Send the process a signal once it runs, and wait until it is gone."""
    wait_for(lambda: is_started(kept))
    os.kill(running(kept), number)
    wait_for(lambda: not running(kept))


def test_the_process_comes_with_the_first_table_and_goes_with_its_parent(lake: Path) -> None:
    kept = Refresher(lake, SETTINGS, print)
    kept.wake()
    assert not running(kept)
    write_definitions(lake, [OwnTable("kinds", PER_DAY, "day")])
    kept.wake()
    assert running(kept)
    wait_for(lambda: read_own_state(lake, "kinds").rows > 0)
    remove_table(lake, "kinds", SETTINGS)
    write_definitions(lake, [OwnTable("paid", PER_COMMIT, "commit")])
    wait_for(lambda: read_own_state(lake, "paid").rows > 0)
    kept.close()
    assert not running(kept)


def test_a_process_that_keeps_crashing_is_reported_once_and_started_less_often(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "PAUSE_S", 0.05)
    monkeypatch.setattr(own, "LONGEST_PAUSE_S", 0.2)
    killed_s = []
    with refreshing(lake, KINDS) as (kept, failures):
        for _ in range(4):
            end(kept, signal.SIGKILL)
            killed_s.append(time.monotonic())
        kept.wake()
    assert failures == [KILLED]
    pauses_s = [after - before for before, after in pairwise(killed_s)]
    assert all(took > least for took, least in zip(pauses_s, (0.05, 0.1, 0.2), strict=True))


def test_a_failure_behind_an_orderly_end_is_a_first_one(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "PAUSE_S", 0.05)
    with refreshing(lake, KINDS) as (kept, failures):
        end(kept, signal.SIGKILL)
        wait_for(lambda: is_started(kept))
        wait_for(lambda: read_own_state(lake, "kinds").rows > 0)
        end(kept, signal.SIGTERM)
        monkeypatch.setattr(own, "PAUSE_S", 0)
        assert is_started(kept), "it pauses no longer than before the failure"
        end(kept, signal.SIGKILL)
        kept.wake()
    assert failures == 2 * [KILLED]


def test_a_statement_that_takes_too_long_is_stopped(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "PART_S", 0.2)
    slow = "select count(*) as n from messages, range(1000000), range(1000000) t(x) where x % 7 = 3"
    with pytest.raises(QueryError, match=r"(?i)interrupt"):
        add_table(lake, OwnTable("slow", slow, "day"), SETTINGS)


def test_views_filters_and_pages(lake: Path) -> None:
    add_table(lake, OwnTable("paid", PER_COMMIT, "commit"), SETTINGS)
    assert any("paid" in path.read_text() for path in write_views(lake) if path.suffix == ".sql")
    state = read_own_state(lake, "paid")
    every = ask_table(lake, SETTINGS, "paid", state, (), (), (1000, 0))
    assert every.num_rows == state.rows > 3
    page = ask_table(lake, SETTINGS, "paid", state, (), [("value", True)], (2, 1))
    values = sorted(every["value"].to_pylist(), reverse=True)
    assert page["value"].to_pylist() == values[1:3]
    tx_hash = every["tx_hash"][0].as_py()
    found = ask_table(
        lake, SETTINGS, "paid", state, [TableFilter("tx_hash", "=", tx_hash.hex())], (), (9, 0)
    )
    assert set(found["tx_hash"].to_pylist()) == {tx_hash}
    with pytest.raises(QueryError, match="x'; drop"):
        ask_table(
            lake, SETTINGS, "paid", state, [TableFilter("value", ">", "x'; drop")], (), (9, 0)
        )


def test_copies_carry_definitions(lake: Path, tmp_path: Path) -> None:
    table = OwnTable("paid", PER_COMMIT, "commit")
    add_table(lake, table, SETTINGS)
    copy_lake(lake, tmp_path / "copy")
    assert read_definitions(tmp_path / "copy") == {"paid": table}
    refreshed = refresh_tables(tmp_path / "copy", SETTINGS)["paid"]
    assert refreshed.rows == read_own_state(lake, "paid").rows
    copy_lake(lake, tmp_path / "unread")
    remove_table(tmp_path / "unread", "paid", SETTINGS)
    assert not read_definitions(tmp_path / "unread")
    write_definitions(lake, [msgspec.structs.replace(table, name="../paid")])
    with pytest.raises(TableInvalid, match="is not a table name"):
        copy_lake(lake, tmp_path / "other")


def test_damage_is_named(lake: Path) -> None:
    state = add_table(lake, OwnTable("paid", PER_COMMIT, "commit"), SETTINGS)
    assert verify_lake(lake).damage == []
    part = next(iter(state.parts.values()))
    sound = (lake / part.path).read_bytes()
    (lake / part.path).write_bytes(bytes([sound[0] ^ 1]) + sound[1:])
    assert [each.file for each in verify_lake(lake).damage] == [part.path]
    with pytest.raises(LakeCorrupt, match=part.path):
        connect(open_snapshot(lake), SETTINGS, statement="from paid")
    (lake / part.path).write_bytes(sound)
    (lake / "_tables" / "paid" / "state.json").write_bytes(b"{}")
    assert [each.file for each in verify_lake(lake).damage] == ["_tables/paid/state.json"]
    remove_table(lake, "paid", SETTINGS)
    add_table(lake, OwnTable("paid", PER_COMMIT, "commit"), SETTINGS)
    commit(lake, 60, 60)
    file = [each for each in read_state(lake).files if each.table == "messages"][-1]
    (lake / file.path).write_bytes(b"x")
    assert "messages" in str(refresh_tables(lake, SETTINGS)["paid"].error)
    (lake / "_tables" / "definitions.json").write_bytes(b"{}")
    assert "_tables/definitions.json" in [each.file for each in verify_lake(lake).damage]
    with pytest.raises(LakeCorrupt, match="definitions"):
        read_definitions(lake)


def test_commands(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "paid.sql"
    file.write_text(PER_COMMIT)

    def run(*arguments: str) -> tuple[int, str]:
        done = commands.run("table", *arguments, "--lake", lake)
        return done.exit_code, done.output

    code, shown = run("add", "paid", str(file), "--per", "commit")
    assert (code, "paid: " in shown) == (0, True)
    assert run("add", "paid", str(file), "--per", "day")[0] == 1
    assert "(per commit)" in run("list")[1]
    listed = msgspec.json.decode(run("list", "--json")[1])
    assert [column["name"] for column in listed[0]["columns"]][:2] == ["tx_hash", "msg_index"]
    shown = commands.run("schema", "--dbt", "--lake", lake).output
    assert "- name: paid" in shown.split("- name: transactions", 1)[1]
    shown = commands.run("schema", "--lake", lake).output
    assert "# User-defined tables\n\n## paid" in shown
    assert run("refresh", "paid")[0] == 0
    code, shown = run("refresh", "other")
    assert (code, "no user-defined table other; there are: paid" in shown) == (1, True)
    done = commands.run("sql", "select count(*) from paid", "--lake", lake)
    assert done.exit_code == 0
    assert run("remove", "paid") == (0, "paid: removed\n")
    with pytest.raises(TableInvalid, match="none"):
        remove_table(lake, "paid", SETTINGS)
    for ask in (refresh_tables, partial(remove_table, name="paid")):
        with pytest.raises(LakeNotFound):
            ask(tmp_path / "none", settings=SETTINGS)
    assert not (tmp_path / "none").exists()

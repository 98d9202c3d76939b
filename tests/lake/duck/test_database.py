"""One DuckDB for many snapshots: each sees its own files, and unused views are dropped."""

import gc
import re
from pathlib import Path

import duckdb
import msgspec
import pytest

from tonlake.lake.duck.connection import (
    ALL_VIEWS,
    VIEW_BASES,
    Database,
    SnapshotViews,
    connect,
    list_views,
    read_macros,
    read_sql,
)
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema.view_catalogue import VIEWS
from tonlake.lake.settings import LakeSettings

ROWS = "select count(*) from blocks"


class Owner:
    """A borrower of a connection."""


def ask(views: SnapshotViews, statement: str) -> list[tuple[object, ...]]:
    """Run a statement on its own connection."""
    owner = Owner()
    connection = views.lend(owner)
    views.provide(statement)
    return connection.execute(statement).fetchall()


def count_schemas(views: SnapshotViews) -> int:
    """Return how many snapshots have a schema."""
    found = ask(views, "select count(*) from duckdb_schemas() where schema_name ^@ 'snapshot_'")
    return int(str(found[0][0]))


def test_a_statement_names_its_views() -> None:
    assert list_views("select 1") == ()
    assert list_views("select * from blocks, account_states") == ("blocks", "account_states")
    traced = list_views("from traced_transactions")
    assert traced == ("transactions", "transaction_traces", "traced_transactions")
    assert list_views("from state_cells") == ("state_cell_copies", "state_cells")


@pytest.mark.parametrize("name", VIEW_BASES)
def test_views_are_made_after_those_that_their_text_names(name: str) -> None:
    text = re.sub(r"--.*", "", read_sql(name))
    read = re.findall(r"(?:from|join)\s+(\w+)", text) + re.findall(r"'(\w+)'", text)
    named = set(read) & set(ALL_VIEWS)
    assert named == set(VIEW_BASES[name])
    made = list_views(name.upper())
    assert made[-1] == name
    assert all(
        made.index(base) < made.index(view) for view in made for base in VIEW_BASES.get(view, ())
    )


def test_macros_need_no_view() -> None:
    text = re.sub(r"--.*", "", read_macros())
    macros = set(re.findall(r"macro (\w+)", text))
    assert set(re.findall(r"from (\w+)", text)) - macros == {"query_table"}


def test_snapshots_open_at_once_see_their_own_files(read_lake: Path) -> None:
    database = Database(read_lake, LakeSettings())
    views = {number: database.open(open_snapshot(read_lake, number)) for number in (3, 1, 2)}
    apart = {
        number: connect(open_snapshot(read_lake, number)).execute(ROWS).fetchall()
        for number in views
    }
    assert len({str(rows) for rows in apart.values()}) == 3
    for _ in range(2):
        assert {number: ask(each, ROWS) for number, each in views.items()} == apart
    database.close()


def test_every_view_can_be_asked(read_lake: Path) -> None:
    snapshot = open_snapshot(read_lake)
    views, apart = Database(read_lake, LakeSettings()).open(snapshot), connect(snapshot)
    for name in set(ALL_VIEWS) - set(VIEWS):
        count = f"from (select count(*) from {name})"  # noqa: S608 - a view of ours
        assert ask(views, count) == apart.execute(count).fetchall()


def test_views_without_readers_are_dropped(read_lake: Path) -> None:
    database = Database(read_lake, LakeSettings())
    kept = database.open(open_snapshot(read_lake, 1))
    before = ask(kept, ROWS)
    for _ in range(3):
        views = database.open(open_snapshot(read_lake))
        ask(views, ROWS)
        del views
        gc.collect()
    newest = database.open(open_snapshot(read_lake))
    assert count_schemas(newest) == 2
    assert ask(kept, ROWS) == before


def test_a_database_that_knew_many_files_gives_way_to_another(
    read_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, newest = Database(read_lake, LakeSettings()), open_snapshot(read_lake)
    older = msgspec.structs.replace(newest.files["blocks"][0], path="blocks/day=2000-01-01/gone")
    before = open_snapshot(read_lake)
    before.files["blocks"] = (older, *newest.files["blocks"])
    views = database.open(before)
    with pytest.raises(duckdb.Error):
        ask(views, ROWS)
    same = database.open(newest)
    expected = ask(same, ROWS)
    assert count_schemas(same) == 2
    monkeypatch.setattr("tonlake.lake.duck.connection.FORGOTTEN_KEPT", 0)
    other = database.open(newest)
    assert ask(other, ROWS) == expected
    assert count_schemas(other) == 1
    assert ask(same, ROWS) == expected
    assert count_schemas(database.open(newest)) == 2


def test_a_reader_that_is_left_keeps_its_views(read_lake: Path) -> None:
    database = Database(read_lake, LakeSettings())
    owner, views = Owner(), database.open(open_snapshot(read_lake, 1))
    connection = views.lend(owner)
    views.provide(ROWS)
    database.close()
    del database
    gc.collect()
    assert connection.execute(ROWS).fetchall() != [(0,)]


def test_a_connection_is_lent_to_one_at_a_time(read_lake: Path) -> None:
    views = Database(read_lake, LakeSettings()).open(open_snapshot(read_lake))
    one, other = Owner(), Owner()
    first, second = views.lend(one), views.lend(other)
    assert first is not second
    del one
    gc.collect()
    third = Owner()
    assert views.lend(third) is first


@pytest.mark.parametrize(
    "statement",
    [
        "from read_text('/etc/hostname')",
        "from read_text('{lake}/../lake-2/secret')",
        "copy (select 1) to '/tmp/tonlake-was-here.csv'",
        "attach '/tmp/tonlake-was-here.db'",
        "set enable_external_access = true",
        "set allowed_directories = ['/']",
        "set threads = 64",
        "load httpfs",
    ],
)
def test_nothing_but_the_lake_is_in_reach(read_lake: Path, statement: str) -> None:
    views = Database(read_lake, LakeSettings()).open(open_snapshot(read_lake))
    owner = Owner()
    with pytest.raises(duckdb.Error):
        views.lend(owner).execute(statement.format(lake=read_lake))

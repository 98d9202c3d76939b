"""The hand-off files give the same rows in the DuckDB command line and in Python, anywhere."""

import json
import shutil
import sys
from functools import cache
from pathlib import Path

import duckdb
import pytest

from tests.commands import run_program
from tests.lake.rows import commit_rows, write_old_file
from tonlake.lake.commit.delta import publish
from tonlake.lake.duck.connection import ALL_VIEWS, VIEW_NAMES, connect
from tonlake.lake.duck.engine import DEFAULTS
from tonlake.lake.duck.statement import quote
from tonlake.lake.duck.views import _write_views, write_views
from tonlake.lake.errors import LakeCorrupt, LakeMisplaced
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LogReader, LogState
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.dictionary import REFERENCE_TABLES
from tonlake.lake.schema.dictionary import VIEWS as VIEW_CATALOGUE
from tonlake.lake.settings import LakeSettings

CLI = Path(sys.executable).parent / "duckdb"
MACROS = {view.name for view in VIEW_CATALOGUE.values() if view.parameters}
RELATIONS = [*sorted(set(ALL_VIEWS) - MACROS), "balances_at(now()::timestamp)"]
COUNTS = " union all ".join(
    f"select '{name.partition('(')[0]}' as name, count(*) as n from {name}"  # noqa: S608 - ours
    for name in RELATIONS
)
COUNT = "select count(*) as n from blocks"
SWEPT = LakeSettings(replaced_grace_s=0)
FRIENDLY = "select ton_friendly(-1, unhex(repeat('3', 64))) as elector"


@pytest.fixture(scope="module")
def handed_over(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with its hand-off files, in a folder whose name needs quoting."""
    lake = tmp_path_factory.mktemp("it's") / "my lake"
    shutil.copytree(demo_lake, lake)
    assert [path.name for path in write_views(lake)] == ["views.sql", "catalog.duckdb"]
    return lake


def run_cli(*arguments: str, cwd: Path) -> list[dict[str, object]]:
    """Return the rows that the DuckDB command line prints for its last query."""
    done = run_program(CLI, "-json", *arguments, cwd=cwd, check=True)
    rows: list[dict[str, object]] = json.loads(done.stdout[done.stdout.rindex("[{") :])
    return rows


@cache
def expected_counts(lake: Path) -> list[tuple[str, int]]:
    """Return the number of rows of every view, from the product's own connection."""
    counts: list[tuple[str, int]] = connect(open_snapshot(lake)).execute(COUNTS).fetchall()
    return counts


@pytest.mark.parametrize("arguments", [("-init", "views.sql"), ("-readonly", "catalog.duckdb")])
def test_the_command_line_answers_from_anywhere(
    handed_over: Path, tmp_path: Path, arguments: tuple[str, str]
) -> None:
    flag, name = arguments
    given = (flag, str(handed_over / name))
    rows = run_cli(*given, "-c", COUNTS, cwd=tmp_path)
    assert [tuple(row.values()) for row in rows] == expected_counts(handed_over)
    assert run_cli(*given, "-c", FRIENDLY, cwd=tmp_path) == [
        {"elector": "Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF"}
    ]


def test_python_reads_the_statements(handed_over: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute((handed_over / "views.sql").read_text())
        assert connection.execute(COUNTS).fetchall() == expected_counts(handed_over)


def test_every_view_and_column_is_commented(handed_over: Path) -> None:
    with duckdb.connect(str(handed_over / "catalog.duckdb"), read_only=True) as connection:
        views = connection.execute(
            "select view_name, comment from duckdb_views() where not internal"
        ).fetchall()
        columns = connection.execute(
            "select table_name, column_name, comment from duckdb_columns() where not internal"
        ).fetchall()
    assert sorted(name for name, _ in views) == sorted({*ALL_VIEWS, "lake_snapshot"} - MACROS)
    assert all(comment for _, comment in views)
    assert all(comment for _, _, comment in columns)
    found = {(view, column): comment for view, column, comment in columns}
    for table in TABLES.values():
        for column in table.columns:
            assert found[VIEW_NAMES.get(table.name, table.name), column.name] == column.doc
    for view in (*VIEW_CATALOGUE.values(), *REFERENCE_TABLES):
        if not view.parameters:
            shown = {
                name: comment for (owner, name), comment in found.items() if owner == view.name
            }
            assert shown == {column.name: column.doc for column in view.columns}


def test_a_folder_whose_name_means_something_to_duckdb(
    handed_over: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(handed_over, tmp_path / "~")
    monkeypatch.chdir(tmp_path)
    write_views(Path("~"))
    with duckdb.connect(str(tmp_path / "~" / "catalog.duckdb"), read_only=True) as connection:
        assert connection.sql(COUNT).fetchall() == [(588,)]


def test_a_root_that_duckdb_cannot_take_is_refused(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(LakeMisplaced, match="UTF-8"):
        write_views(lake, root="/srv/\udcff")
    lake.rename(tmp_path / "a?b")
    (tmp_path / "link").symlink_to("a?b")
    with pytest.raises(LakeMisplaced, match=r"a\?b, contains \?,"):
        write_views(tmp_path / "link")
    assert not list((tmp_path / "a?b").glob("views*"))


def test_a_lake_that_moved(lake: Path, tmp_path: Path) -> None:
    moved, elsewhere = tmp_path / "moved to", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_views(lake)
    lake.rename(moved)
    expected = [
        {"n": len(connect(open_snapshot(moved), statement=COUNT).view("blocks").fetchall())}
    ]
    place = f"set variable lake = {quote(str(moved))}"
    read, catalog = f".read {quote(str(moved / 'views.sql'))}", str(moved / "catalog.duckdb")
    assert run_cli("-init", "views.sql", "-c", COUNT, cwd=moved) == expected
    assert run_cli("-c", place, "-c", read, "-c", COUNT, cwd=elsewhere) == expected
    for path in ("catalog.duckdb", "../moved to/catalog.duckdb", catalog):
        assert run_cli("-readonly", path, "-c", COUNT, cwd=moved) == expected
    attach = f"attach {quote(catalog)} as tonlake (read_only)"
    counted = "select count(*) as n from tonlake.blocks"
    assert run_cli("-c", place, "-c", attach, "-c", counted, cwd=elsewhere) == expected
    with pytest.raises(duckdb.InvalidInputException, match=r"start DuckDB in its folder, or first"):
        duckdb.execute((moved / "views.sql").read_text())


@pytest.mark.parametrize("version", ["1.5", "2.x"])
def test_an_open_session_follows_commits(lake: Path, tmp_path: Path, version: str) -> None:
    """Through commits and compactions whose replaced files are gone, with an attached catalogue."""
    write_views(lake)
    attach = f"attach {quote(str(lake / 'catalog.duckdb'))} as tonlake (read_only)"
    question = (
        "select commit, (select count(*) from tonlake.messages) as n from tonlake.lake_snapshot"
    )
    with duckdb.connect() as connection:
        connection.execute(attach)

        def ask() -> list[tuple[object, ...]]:
            if version == "2.x":
                return connection.execute(question).fetchall()
            rows = run_cli("-c", attach, "-c", question, cwd=tmp_path)
            return [tuple(row.values()) for row in rows]

        for first in (31, 41, 51):
            commit_rows(lake, first, first + 9, day="2024-02-01")
            publish(LogReader(lake), SWEPT)
            compact_lake(lake, SWEPT)
            sweep_orphans(lake, SWEPT)
            snapshot = open_snapshot(lake)
            rows = connect(snapshot, statement=question).view("messages").fetchall()
            assert ask() == [(snapshot.number, len(rows))]
    assert verify_lake(lake).damage == []
    assert not list(lake.glob("**/.tmp-*"))


def test_rows_are_not_silently_left_out_or_of_another_lake(lake: Path, handed_over: Path) -> None:
    write_views(lake)
    with duckdb.connect(str(lake / "catalog.duckdb"), read_only=True) as connection:
        # As if the query had listed the folder before a commit, and the live files after it.
        (lake / open_snapshot(lake).files["blocks"][0].path).unlink()
        with pytest.raises(duckdb.InvalidInputException, match="changed as the query began"):
            connection.execute("select count(*) from blocks")
        connection.execute(f"set variable lake = {quote(str(handed_over))}")
        with pytest.raises(duckdb.InvalidInputException, match="these views are of another lake"):
            connection.execute("select count(*) from blocks")


def test_macros_of_an_attached_catalogue(handed_over: Path) -> None:
    place = quote(str(handed_over / "catalog.duckdb"))
    calls = (
        "ton_friendly(-1, unhex(repeat('3', 64)), testnet := true)",
        "ton_account('Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF')",
        "ton_workchain('Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF')",
        "ton_scaled(-1234567, 3)",
        "ton_opcode_number('0x8f8a7ea5')",
    )
    with duckdb.connect() as connection:
        connection.execute(f"attach {place} as tonlake (read_only)")
        for call in calls:
            statement = f"select {call}"
            made = connect(open_snapshot(handed_over), statement=statement)
            here = made.execute(statement).fetchall()
            assert connection.execute(f"select tonlake.{call}").fetchall() == here
        with pytest.raises(duckdb.InvalidInputException, match="x is not an address"):
            connection.execute("select tonlake.ton_account('x')")


def test_skipped_files_are_not_read(lake: Path) -> None:
    """Of files replaced but still there, and of days that a filter leaves out."""
    write_views(lake)
    commit_rows(lake, 31, 40, day="2024-01-22")
    compact_lake(lake, DEFAULTS)
    live = open_snapshot(lake).files["blocks"]
    assert len([*lake.glob("blocks/day=*/*.parquet")]) > len(live)
    days = {Path(file.path).parent.name.removeprefix("day=") for file in live}
    with duckdb.connect(str(lake / "catalog.duckdb"), read_only=True) as connection:
        for condition, files in (("true", len(live)), (f"day = '{min(days)}'", 1)):
            plan = connection.execute(
                f"explain analyze select sum(seqno) from blocks where {condition}"  # noqa: S608
            ).fetchall()[0][1]
            assert f"Total Files Read: {files} " in plan


def test_another_root(lake: Path) -> None:
    write_views(lake, root="/srv/ton")
    assert "'/srv/ton'" in (lake / "views.sql").read_text()
    assert str(lake) not in (lake / "views.sql").read_text()


def test_a_damaged_lake_is_not_handed_over(lake: Path) -> None:
    file = open_snapshot(lake).files["blocks"][0].path
    (lake / file).write_bytes(b"")
    with pytest.raises(LakeCorrupt, match=file):
        write_views(lake)
    assert not (lake / "views.sql").exists()


@pytest.mark.parametrize("versions", [(), (0,), (0, 1)])
def test_empty_tables_and_old_files(tmp_path: Path, versions: tuple[int, ...]) -> None:
    both = write_old_file(tmp_path, "end_lt")
    files = [both[version] for version in versions]
    snapshot = Snapshot(tmp_path, LogState(number=1, files=tuple(files), ranges=((1, 9),)))
    (tmp_path / "_log").mkdir()
    _write_views(snapshot, None, DEFAULTS)
    with duckdb.connect(str(tmp_path / "catalog.duckdb"), read_only=True) as connection:
        view = connection.view("shard_blocks")
        mine = connect(snapshot, statement="from shard_blocks").view("shard_blocks")
        assert (view.columns, view.types) == (mine.columns, mine.types)
        assert sorted(view.fetchall(), key=repr) == sorted(mine.fetchall(), key=repr)


def test_a_table_gets_its_first_rows(tmp_path: Path) -> None:
    commit_rows(tmp_path, 1, 2, tables=("blocks",))
    write_views(tmp_path)
    command = "-readonly", "catalog.duckdb", "-c", "select count(*) as n from messages"
    assert run_cli(*command, cwd=tmp_path) == [{"n": 0}]
    commit_rows(tmp_path, 3, 4, rows=7)
    publish(LogReader(tmp_path), DEFAULTS)
    assert run_cli(*command, cwd=tmp_path) == [{"n": 7}]

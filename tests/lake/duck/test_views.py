"""The hand-off files give the same rows in the DuckDB command line and in Python, anywhere."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.lake.rows import commit_rows, write_old_file
from tonlake.lake.duck.connection import ALL_VIEWS, VIEW_NAMES, connect
from tonlake.lake.duck.statement import quote
from tonlake.lake.duck.views import render_script, write_views
from tonlake.lake.errors import LakeCorrupt, LakeMisplaced
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LogState
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.view import REFERENCE_TABLES
from tonlake.lake.schema.view_catalogue import MACROS
from tonlake.lake.schema.view_catalogue import VIEWS as VIEW_CATALOGUE

CLI = Path(sys.executable).parent / "duckdb"
RELATIONS = [*sorted(set(ALL_VIEWS) - MACROS), "balances_at(now()::timestamp)"]
COUNTS = " union all ".join(
    f"select '{name.partition('(')[0]}' as name, count(*) as n from {name}"  # noqa: S608 - ours
    for name in RELATIONS
)
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
    done = subprocess.run(
        [str(CLI), "-json", *arguments], cwd=cwd, capture_output=True, text=True, check=True
    )
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


def test_python_reads_both_files(handed_over: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute((handed_over / "views.sql").read_text())
        assert connection.execute(COUNTS).fetchall() == expected_counts(handed_over)
    with duckdb.connect(str(handed_over / "catalog.duckdb"), read_only=True) as connection:
        assert connection.execute(COUNTS).fetchall() == expected_counts(handed_over)


def test_every_view_and_column_is_commented(handed_over: Path) -> None:
    with duckdb.connect(str(handed_over / "catalog.duckdb"), read_only=True) as connection:
        views = connection.execute(
            "select view_name, comment from duckdb_views() where not internal"
        ).fetchall()
        columns = connection.execute(
            "select table_name, column_name, comment from duckdb_columns() where not internal"
        ).fetchall()
    assert sorted(name for name, _ in views) == sorted(set(ALL_VIEWS) - MACROS)
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
        assert connection.sql(COUNTS).fetchall() == expected_counts(handed_over)


def test_a_root_that_duckdb_cannot_take_is_refused(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(LakeMisplaced, match="UTF-8"):
        write_views(lake, root="/srv/\udcff")
    lake.rename(tmp_path / "a?b")
    (tmp_path / "link").symlink_to("a?b")
    with pytest.raises(LakeMisplaced, match=r"a\?b, contains \?,"):
        write_views(tmp_path / "link")
    assert not list((tmp_path / "a?b").glob("views*"))


def test_a_lake_that_moved(handed_over: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(handed_over, moved)
    for file in (moved / "blocks").rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).slice(0, 1), file)
    place = f"set variable lake = {quote(str(moved))}"
    count = "select count(*) as n from blocks"
    views = run_cli("-c", place, "-c", ".read views.sql", "-c", count, cwd=moved)
    catalog = run_cli("-readonly", "catalog.duckdb", "-c", place, "-c", count, cwd=moved)
    assert views == catalog == [{"n": 1}]


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


def test_new_files_take_the_place_of_old_ones(lake: Path) -> None:
    write_views(lake)
    before = (lake / "views.sql").read_text()
    commit_rows(lake, 31, 40)
    write_views(lake)
    assert (lake / "views.sql").read_text() != before
    assert not list(lake.glob(".tmp-*"))


@pytest.mark.parametrize("versions", [(), (0,), (0, 1)])
def test_empty_tables_and_old_files(tmp_path: Path, versions: tuple[int, ...]) -> None:
    both = write_old_file(tmp_path, "end_lt")
    files = [both[version] for version in versions]
    snapshot = Snapshot(tmp_path, LogState(number=1, files=tuple(files), ranges=((1, 9),)))
    with duckdb.connect() as connection:
        connection.execute(render_script(snapshot, str(tmp_path)))
        view = connection.view("shard_blocks")
        mine = connect(snapshot).view("shard_blocks")
        assert (view.columns, view.types) == (mine.columns, mine.types)
        assert sorted(view.fetchall(), key=repr) == sorted(mine.fetchall(), key=repr)

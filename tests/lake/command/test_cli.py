"""The commands: their output for people and machines, and their exit codes."""

import json
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.commands import run
from tests.lake.rows import commit_rows, file_bytes
from tonlake.api.command.loading import NAMES
from tonlake.lake.command import cli, maintain
from tonlake.lake.duck.views import read_flat_macros
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema import SCHEMA_VERSION, TABLES


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name.variable, raising=False)


@pytest.mark.parametrize("command", ["status", "verify", "views", "sql", "table list", "schema"])
def test_no_lake(tmp_path: Path, command: str) -> None:
    query, lake_dir = ["select 1"] if command == "sql" else [], tmp_path / "lake"
    lake_dir.mkdir()
    done = run(*command.split(), *query, "--lake", lake_dir)
    text = "holds no lake: no commit in _log/; tonlake ingest makes one"
    assert (done.exit_code, done.stderr) == (1, f"error: {lake_dir} {text}\n")
    assert run(*command.split(), *query).exit_code == (0 if command == "schema" else 2)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a?b", "a?b, contains ?"),
        ("a[X]b", "a[X]b, contains ["),
        ("a\udcff", "a\\xff, is not UTF-8"),
    ],
)
@pytest.mark.parametrize("command", ["status", "verify", "views", "sql"])
def test_a_path_that_duckdb_cannot_take_is_refused(
    tmp_path: Path, command: str, name: str, shown: str
) -> None:
    """A glob would read the lake `aXb` where `a[X]b` was named."""
    query = ["select 1"] if command == "sql" else []
    done = run(command, *query, "--lake", tmp_path / name)
    assert done.exit_code == 2
    assert f"the path of the lake, {tmp_path}/{shown}" in done.stderr
    assert "give it another name" in done.stderr


def test_status_for_people(read_lake: Path) -> None:
    done = run("status", "--lake", read_lake)
    assert done.exit_code == 0
    for line in ("Snapshot 3", "Network -239", "blocks 1..10, 16..30", "Holes 11..15"):
        assert line in done.output
    assert "masterchain blocks 21..30 of 2024-01-22" in done.output
    for name in TABLES:
        assert name in done.output


def test_status_for_machines(read_lake: Path) -> None:
    shown = json.loads(run("status", "--lake", read_lake, "--json").output)
    assert shown["ranges"] == [[1, 10], [16, 30]]
    assert shown["holes"] == [[11, 15]]
    assert shown["last_commit"]["number"] == shown["snapshot"] == 3
    assert shown["tables"]["blocks"]["rows"] == 25
    assert shown["bytes"] == sum(table["bytes"] for table in shown["tables"].values())
    size = shown["tables"]["messages"]
    assert size["bytes_per_row"] == round(size["bytes"] / size["rows"], 1)


def test_status_of_empty_tables(tmp_path: Path) -> None:
    commit_rows(tmp_path, 1, 3, tables=["blocks"], network=None)
    done = run("status", "--lake", tmp_path)
    assert "Network" not in done.output
    assert "Holes none" in done.output
    next(tmp_path.glob("blocks/*/*.parquet")).unlink()
    assert "Missing 1 file: blocks/day=" in run("status", "--lake", tmp_path).output


@pytest.mark.parametrize("name", ["_log", "blocks/day=2024-01-22", "new/lake"])
def test_a_lake_inside_a_lake_is_refused(read_lake: Path, name: str) -> None:
    done = run("status", "--lake", read_lake / name)
    assert (done.exit_code, f"is inside the lake {read_lake}:" in done.stderr) == (2, True)


def test_verify_names_damage(lake: Path) -> None:
    sound = run("verify", "--lake", lake)
    assert (sound.exit_code, "none damaged" in sound.output) == (0, True)
    assert json.loads(run("verify", "--lake", lake, "--json").output)["damage"] == []
    file = open_snapshot(lake).files["blocks"][1].path
    (lake / file).write_bytes(b"")
    done = run("verify", "--lake", lake)
    assert (done.exit_code, f"damaged: {file}: it has 0 bytes instead" in done.output) == (1, True)
    machine = run("verify", "--lake", lake, "--json")
    assert machine.exit_code == 1
    assert [damage["file"] for damage in json.loads(machine.output)["damage"]] == [file]


def test_verify_lists_and_sweeps_orphans(lake: Path) -> None:
    orphan = "blocks/day=2024-01-02/1-10-00.parquet"
    (lake / orphan).write_text("x")
    listed = run("verify", "--lake", lake).output
    assert f"unused: {orphan}" in listed
    with mock.patch.object(maintain, "ORPHANS_SHOWN", 0):
        assert orphan not in run("verify", "--lake", lake).output
    assert "unused by the newest snapshot: 1 file; --sweep removes those older than" in listed
    assert "removed" not in run("verify", "--lake", lake, "--sweep").output
    swept = run("verify", "--lake", lake, "--sweep", env={"TONLAKE_LAKE_ORPHAN_GRACE_S": "0"})
    assert f"removed: {orphan}" in swept.output
    assert not (lake / orphan).exists()


COUNT = "select count(*) as n from blocks"


def test_sql_formats(read_lake: Path, tmp_path: Path) -> None:
    assert run("sql", COUNT, "--lake", read_lake).output.split() == ["n", "25"]
    assert run("sql", COUNT, "--lake", read_lake, "--format", "csv").output == "n\n25\n"
    assert json.loads(run("sql", COUNT, "--lake", read_lake, "--format", "json").output) == [
        {"n": 25}
    ]
    expected: dict[str, Callable[[Path], bool]] = {
        "csv": lambda path: path.read_text() == "n\n25\n",
        "json": lambda path: json.loads(path.read_text()) == [{"n": 25}],
        "table": lambda path: path.read_text().split() == ["n", "25"],
        "parquet": lambda path: bool(pq.read_table(path).to_pylist() == [{"n": 25}]),
    }
    for name, as_expected in expected.items():
        file = tmp_path / f"answer.{name}"
        done = run("sql", COUNT, "--lake", read_lake, "--format", name, "-o", file)
        assert (done.exit_code, done.output) == (0, "")
        assert as_expected(file)


def test_sql_of_an_older_snapshot(read_lake: Path) -> None:
    asked = run("sql", COUNT, "--lake", read_lake, "--snapshot", 1, "--format", "csv")
    assert asked.output == "n\n10\n"
    gone = run("sql", COUNT, "--lake", read_lake, "--snapshot", 9)
    assert (gone.exit_code, gone.stderr) == (
        1,
        f"error: {read_lake} has commits 1 to 3, and no 9\n",
    )


def test_sql_may_begin_with_a_comment(read_lake: Path) -> None:
    query = f"-- how many\n{COUNT}"
    for arguments in ((query, "--format", "json"), ("--format", "json", "--", query)):
        done = run("sql", "--lake", read_lake, *arguments)
        assert (done.exit_code, json.loads(done.stdout)) == (0, [{"n": 25}])
    assert "No such option '--forma'" in run("sql", COUNT, "--forma", "csv").stderr


def test_sql_is_utf8_in_any_locale(read_lake: Path) -> None:
    for data, text in (("'ü'".encode(), "ü"), (b"'\xff'", "\ufffd")):
        query = "select " + data.decode("ascii", "surrogateescape") + " as x"
        done = run("sql", query, "--lake", read_lake, "--format", "json")
        assert (done.exit_code, json.loads(done.stdout)) == (0, [{"x": text}])


def test_sql_faults_leave_no_file(read_lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.csv"
    for query in ("selec", "select error('stop') from blocks"):
        done = run("sql", query, "--lake", read_lake, "--format", "csv", "-o", file)
        assert done.exit_code == 1
        assert done.stderr.startswith("error: ")
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "none" / "answer.csv"
    done = run("sql", COUNT, "--lake", read_lake, "-o", file)
    assert (done.exit_code, done.stderr) == (1, f"error: {file}: No such file or directory\n")


def test_an_interrupt_while_duckdb_runs() -> None:
    """DuckDB raises an error of its own, sometimes only when the statement ends."""
    with pytest.raises(KeyboardInterrupt), cli.failing_cleanly():
        raise RuntimeError("Query interrupted")


def test_sql_parquet_goes_to_a_pipe_and_not_to_a_terminal(
    read_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in ((), ("-o", "-")):
        done = run("sql", COUNT, "--lake", read_lake, "--format", "parquet", *arguments)
        assert done.exit_code == 0
        assert pq.read_table(BytesIO(done.stdout_bytes)).to_pylist() == [{"n": 25}]
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(
        "tonlake.lake.command.argument.sys", SimpleNamespace(stdout=terminal, exit=sys.exit)
    )
    done = run("sql", COUNT, "--lake", read_lake, "--format", "parquet")
    assert done.exit_code == 2
    assert "-o FILE" in done.stderr


def test_sql_shows_the_first_rows_of_many(read_lake: Path) -> None:
    with mock.patch.object(cli, "TABLE_ROWS", 2):
        done = run("sql", "from blocks", "--lake", read_lake)
    assert len(done.stdout.splitlines()) == 3
    assert done.stderr == "2 of 25 rows shown; --format csv or json writes all\n"


def test_sql_reads_only(read_lake: Path) -> None:
    before = file_bytes(read_lake)
    assert run("sql", "copy blocks to 'x.csv'", "--lake", read_lake).exit_code == 1
    assert run("sql", "from blocks", "--lake", read_lake).exit_code == 0
    assert file_bytes(read_lake) == before


@pytest.mark.parametrize("failure", [duckdb.IOException, duckdb.TransactionException])
def test_views_of_a_folder_that_cannot_be_written(lake: Path, failure: type[Exception]) -> None:
    read_flat_macros()  # in memory

    def fail(path: str, **_config: object) -> None:
        Path(f"{path}.wal").touch()
        raise failure("no room")

    with mock.patch.object(duckdb, "connect", side_effect=fail):
        done = run("views", "--lake", lake)
    fault = f"{lake / 'catalog.duckdb'} cannot be written: no room; retry with tonlake views"
    assert (done.exit_code, done.stderr) == (1, f"error: {fault}\n")
    assert not list(lake.glob(".tmp-*"))


def test_views(lake: Path) -> None:
    done = run("views", "--lake", lake)
    assert done.output.split() == [str(lake / "views.sql"), str(lake / "catalog.duckdb")]
    assert (lake / "catalog.duckdb").exists()


def test_schema_documents_every_column() -> None:
    markdown = run("schema").output
    assert run("schema", "--markdown").output == markdown
    machine = json.loads(run("schema", "--json").output)
    assert machine["schema_version"] == SCHEMA_VERSION
    assert [table["name"] for table in machine["tables"]] == list(TABLES)
    for table in TABLES.values():
        assert f"## {table.name}\n\n{table.doc}\n" in markdown
        assert set(table.key) | set(table.sort) <= set(table.names)
        for column in table.columns:
            assert column.doc
            assert f"| `{column.name}` | {column.type} |" in markdown
            assert f"| {column.doc} |" in markdown


def test_a_misspelt_lake_is_suggested(lake: Path) -> None:
    done = run("status", "--lake", f"{lake}s")
    assert (done.exit_code, f"did you mean {lake}? " in done.stderr) == (1, True)
    begun = lake.with_name("another")
    (begun / "_log").mkdir(parents=True)
    assert "did you mean" not in run("status", "--lake", begun).stderr

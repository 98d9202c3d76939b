"""The README's claims, requests and commands hold."""

import csv
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tonlake
from tests.commands import list_commands
from tonlake.api.command.main import main
from tonlake.lake.duck.views import write_views

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def statement() -> str:
    found = re.search(r'tonlake sql --lake \S+ "(?P<sql>[^"]+)"', README)
    assert found is not None
    return found["sql"]


def _run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 200


def test_the_statement_gives_the_same_in_both_tools(
    statement: str, demo_lake: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(demo_lake, lake)
    views = next(path for path in write_views(lake) if path.suffix == ".sql")
    ours = _run(BIN / "tonlake", "sql", "--lake", lake, "--format", "csv", statement)
    theirs = _run(BIN / "duckdb", "-csv", "-init", views, "-c", statement)
    rows = list(csv.reader(io.StringIO(ours)))
    assert rows[0] == ["account", "transactions", "fees_ton"]
    assert len(rows) == 6
    assert list(csv.reader(io.StringIO(theirs))) == rows


def test_the_python_example_runs_as_written(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tonlake, "demo", lambda: tonlake.open(demo_lake), raising=False)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(example, {})  # noqa: S102 - our own page
    shown = capsys.readouterr().out
    assert "10 rows" in shown
    assert re.search(r"^TON +NULL +[0-9]+ +9 ", shown, re.MULTILINE)


def test_every_command_is_listed() -> None:
    assert set(re.findall(r"^\| `tonlake ([\w-]+)", README, re.MULTILINE)) == set(list_commands())


@pytest.mark.parametrize("name", sorted(list_commands()))
def test_every_command_has_help_with_an_example(name: str) -> None:
    asked = CliRunner().invoke(main, [name, "--help"], prog_name="tonlake")
    assert asked.exit_code == 0
    text = asked.output
    assert f"tonlake {name}" in text.split("\n", 1)[1], "an example follows the usage line"

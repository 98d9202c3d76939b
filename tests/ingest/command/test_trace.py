"""The trace commands: their output and their exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.ingest.derive.recording.test_trace import make_line
from tonlake.api.command.loading import compose_settings
from tonlake.api.command.main import main
from tonlake.ingest.command.ingest import ingest_command
from tonlake.lake.log.snapshot import open_snapshot


def run(*arguments: object) -> Result:
    return CliRunner().invoke(
        ingest_command, [str(item) for item in arguments], obj=compose_settings
    )


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A file of one recorded trace."""
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(make_line()))
    return path


def test_a_recording_becomes_a_lake(recording: Path, tmp_path: Path) -> None:
    done = run("--traces", recording, "--lake", tmp_path / "lake")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "one.jsonl: 1 commit(s); rows: 1 transactions, 1 messages\n"
    again = run("--traces", recording, "--lake", tmp_path / "lake")
    assert again.exit_code == 0
    assert again.stdout == "one.jsonl: 0 commit(s)\n"
    assert again.stderr == "skipped 1 spans that are already in the lake: 7:7\n"


def test_the_report_for_machines(recording: Path, tmp_path: Path) -> None:
    done = run("--traces", recording, "--lake", tmp_path / "lake", "--json")
    assert json.loads(done.stdout) == {
        "commits": 1,
        "rows": {"transactions": 1, "messages": 1},
        "skipped": [],
    }


def test_a_malformed_recording_is_a_data_problem(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("{}")
    done = run("--traces", path, "--lake", tmp_path / "lake")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: bad.jsonl, line 1: ")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("option", [("--range", "1:2"), ("--from", 1), ("--follow",)])
def test_ranges_of_a_recording_are_a_usage_error(
    recording: Path, tmp_path: Path, option: tuple[object, ...]
) -> None:
    assert run("--traces", recording, "--lake", tmp_path / "lake", *option).exit_code == 2


def test_rebuilding(recording: Path, tmp_path: Path) -> None:
    lake_dir = tmp_path / "lake"
    run("--traces", recording, "--lake", lake_dir)
    before = open_snapshot(lake_dir).number
    done = CliRunner().invoke(
        main, ["rebuild", "traces", "--lake", str(lake_dir)], obj=compose_settings
    )
    assert (done.exit_code, done.stdout) == (0, "nothing differs from the existing traces\n")
    assert open_snapshot(lake_dir).number == before
    lost = CliRunner().invoke(
        main, ["rebuild", "traces", "--lake", str(tmp_path / "none")], obj=compose_settings
    )
    assert lost.exit_code == 1
    assert "holds no lake" in lost.stderr

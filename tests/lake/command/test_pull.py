"""The command ``tonlake pull``: its output, its refusals, and a copy that follows its source."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.commands import COMMAND, run
from tests.lake.rows import commit_rows
from tests.lake.web import plain_server
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state

GIVE_UP_S = 60.0


def test_for_people_and_machines(read_lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    report = json.loads(run("pull", read_lake, "--lake", copy, "--json").stdout)
    state = read_state(read_lake)
    assert report["snapshot"] == report["commits"] == 3
    assert report["files"] == len(state.files)
    assert report["bytes"] == sum(file.bytes for file in state.files)
    assert report["ranges"] == [[1, 10], [16, 30]]
    again = run("pull", read_lake, "--lake", copy)
    assert again.stdout == f"{copy} already has all 3 commits of its source\n"
    status = json.loads(run("status", "--lake", copy, "--json").stdout)
    assert status["selection"] is None


def test_a_part(read_lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    arguments = ("--days", "2024-01-17..", "--tables", "transactions, messages")
    done = run("pull", read_lake, "--lake", copy, *arguments)
    assert done.exit_code == 0, done.output
    assert "3 commits up to 3, masterchain 16..30: 6 files" in done.stdout
    assert "all checked; without" in done.stdout
    shown = run("status", "--lake", copy).stdout
    assert "Partial copy: days from 2024-01-17 to the last; without the tables" in shown
    assert "Masterchain blocks 16..30" in shown
    status = json.loads(run("status", "--lake", copy, "--json").stdout)
    assert status["selection"]["tables"] == ["blocks", "messages", "transactions"]
    assert run("sql", "select count(*) from messages", "--lake", copy).exit_code == 0
    refused = run("sql", "select count(*) from wallets", "--lake", copy)
    assert refused.exit_code == 1
    assert "a copy without the table wallets" in refused.stderr
    sent = run("export", "--lake", copy, "--to", tmp_path / "third")
    assert (sent.exit_code, "all checked; without" in sent.stdout) == (0, True)
    assert run("pull", read_lake, "--lake", copy).exit_code == 0
    refused = run("pull", read_lake, "--lake", copy, "--days", "2024-01-02")
    assert refused.exit_code == 1
    assert "pull that into a new folder" in refused.stderr
    views = run("views", "--lake", copy)
    assert views.exit_code == 1
    assert "a copy without the table" in views.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--tables", "x"), 2, "there is no table 'x'"),
        (("--days", "x"), 2, "not a range of days"),
        (("--days", "1999-01-01"), 1, "has no blocks of days 1999-01-01..1999-01-01, all tables"),
    ],
)
def test_refused(
    read_lake: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run("pull", read_lake, "--lake", tmp_path / "copy", *arguments)
    assert (done.exit_code, words in done.stderr) == (code, True)


def test_export_is_a_pull_from_the_other_end(read_lake: Path, tmp_path: Path) -> None:
    assert run("pull", read_lake, "--lake", tmp_path / "pulled").exit_code == 0
    sent = run("export", "--lake", read_lake, "--to", tmp_path / "sent", "--json")
    assert json.loads(sent.stdout)["ranges"] == [[1, 10], [16, 30]]
    assert read_state(tmp_path / "sent") == read_state(tmp_path / "pulled")
    again = run("export", "--lake", read_lake, "--to", tmp_path / "sent")
    assert "already has all 3 commits" in again.stdout
    assert run("export", "--lake", tmp_path, "--to", tmp_path / "x").exit_code == 1
    days = ("--days", "2024-01-17")
    assert run("export", "--lake", read_lake, "--to", tmp_path / "day", *days).exit_code == 0
    assert read_state(tmp_path / "day").ranges == ((16, 20),)


def test_no_source(tmp_path: Path) -> None:
    assert run("pull", tmp_path / "none", "--lake", tmp_path / "copy").exit_code == 2
    done = run("pull", "https://x/?y", "--lake", tmp_path / "copy")
    assert (done.exit_code, "not the URL of a folder" in done.stderr) == (1, True)
    done = run("pull", tmp_path, "--lake", tmp_path / "copy")
    assert (done.exit_code, "holds no lake" in done.stderr) == (1, True)
    done = run("export", "--lake", tmp_path, "--to", tmp_path / "new")
    assert (done.exit_code, "holds no lake" in done.stderr) == (1, True)
    assert not (tmp_path / "new").exists()


def test_following(lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with plain_server(lake) as url:
        command = [*COMMAND, "pull", url, "--lake", str(copy), "--follow", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert json.loads(process.stdout.readline())["snapshot"] == 3
                commit_rows(lake, 40, 41)
                began_s = time.monotonic()
                assert json.loads(process.stdout.readline())["ranges"][-1] == [40, 41]
                assert time.monotonic() - began_s < GIVE_UP_S
            finally:
                process.terminate()
    assert read_state(copy) == read_state(lake)


def test_serve_takes_one_source(read_lake: Path, tmp_path: Path) -> None:
    done = run("serve", "--lake", tmp_path / "copy", "--pull", read_lake, "--follow")
    assert (done.exit_code, "--pull copies another lake" in done.stderr) == (2, True)


def test_serve_fetches_nothing_beside(
    read_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TONLAKE_METADATA_ENABLED", "true")
    done = run("serve", "--lake", tmp_path / "copy", "--pull", read_lake)
    assert (done.exit_code, "set [metadata] enabled = false" in done.stderr) == (2, True)


def test_views_of_all_days(read_lake: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    run("pull", read_lake, "--lake", copy, "--days", "2024-01-17")
    count = "select count(*) from blocks"
    found = connect(open_snapshot(copy), statement=count).execute(count).fetchone()
    assert found == (5,)
    assert run("views", "--lake", copy).exit_code == 0

"""A lake moved by the transfer commands gives the same answers and traces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner, Result
from litestar.testing import TestClient

from tests.ingest.derive.trace.lakes import commit_forest, expected_rows, long_forest, read_traces
from tonlake.api.app import create_app
from tonlake.api.command.loading import compose_settings
from tonlake.api.settings import Settings
from tonlake.ingest.command.transfer import commands
from tonlake.ingest.derive.trace.derivation import TraceFiles
from tonlake.lake.maintenance.verify import verify_lake

if TYPE_CHECKING:
    from pathlib import Path

GROUP = click.Group("tonlake", commands=commands)

QUESTIONS = [
    "/api/v3/masterchainInfo",
    "/api/v3/blocks?limit=500",
    "/api/v3/transactions?limit=300",
    "/api/v3/transactions?limit=50&offset=700&sort=asc",
    "/api/v3/messages?limit=300",
    "/api/v3/traces?limit=50&include_actions=true",
    "/api/v3/actions?limit=200",
    "/api/v3/topAccountsByBalance?limit=50",
    "/api/v2/getMasterchainInfo",
    "/api/v2/shards?seqno=20",
    "/api/v2/getBlockHeader?workchain=-1&shard=-9223372036854775808&seqno=20",
]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(GROUP, [str(each) for each in arguments], obj=compose_settings)


@pytest.mark.parametrize("command", commands, ids=lambda command: str(command.name))
def test_help_has_examples(command: click.Command) -> None:
    shown = run(command.name, "--help")
    assert shown.exit_code == 0
    assert f"tonlake {command.name}" in shown.output


def test_the_demo_lake_answers_the_same_elsewhere(demo_lake: Path, tmp_path: Path) -> None:
    folder, copy = tmp_path / "piece", tmp_path / "copy"
    sent = run("export", "--lake", demo_lake, "--to", folder, "--json")
    assert sent.exit_code == 0, sent.output
    assert json.loads(sent.stdout)["whole"] is True
    done = run("import", folder, "--lake", copy)
    assert done.exit_code == 0, done.output
    assert "all checked" in done.stdout
    assert run("import", folder, "--lake", copy).stdout == ("the lake already has all of it\n")
    assert verify_lake(copy).damage == []
    with (
        TestClient(create_app(demo_lake, Settings())) as here,
        TestClient(create_app(copy, Settings())) as there,
    ):
        account = here.get("/api/v3/topAccountsByBalance?limit=1").json()[0]["account"]
        mine = [
            f"/api/v3/accountStates?address={account}",
            f"/api/v3/transactions?account={account}&limit=50",
            f"/api/v2/getTransactions?address={account}&limit=50",
        ]
        for question in (*QUESTIONS, *mine):
            old, new = here.get(question), there.get(question)
            assert (old.status_code, new.status_code) == (200, 200), question
            if "/v2/" in question:
                assert new.json()["result"] == old.json()["result"], question
            else:
                assert new.content == old.content, question


def test_days_that_arrive_one_by_one_make_the_same_traces(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    forest = long_forest()
    for first in range(1, forest.last + 1):
        commit_forest(source, forest, first, first, TraceFiles(source))
    days = sorted({path.name[4:] for path in source.glob("*/day=*")})
    assert len(days) > 1
    for day in reversed(days):
        folder = tmp_path / day
        assert run("export", "--lake", source, "--days", day, "--to", folder).exit_code == 0
        done = run("import", folder, "--lake", copy)
        assert done.exit_code == 0, done.output
        assert "traces and actions were derived again" in done.stdout
    assert read_traces(copy) == read_traces(source) == expected_rows(forest)
    assert verify_lake(copy).damage == []


def test_what_is_wrong_is_said(demo_lake: Path, tmp_path: Path) -> None:
    assert run("export", "--lake", tmp_path, "--to", tmp_path / "x").exit_code == 1
    assert run("export", "--lake", demo_lake, "--to", tmp_path, "--days", "x").exit_code == 2
    empty = run("export", "--lake", demo_lake, "--to", tmp_path, "--days", "2001-01-01")
    assert (empty.exit_code, "none of these days" in empty.stderr) == (1, True)
    none = run("import", tmp_path, "--lake", tmp_path / "copy")
    assert (none.exit_code, "holds no export" in none.stderr) == (1, True)

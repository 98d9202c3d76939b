"""The command ``tonlake ingest``: what it says, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from tonlake.api.command.loading import compose_settings
from tonlake.ingest.command.ingest import ingest_command

if TYPE_CHECKING:
    from pathlib import Path


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(
        ingest_command, [str(item) for item in arguments], obj=compose_settings
    )


@pytest.mark.parametrize("span", ["abc", "1:2:3", "5:3", "239:", "-"])
def test_a_range_of_nothing_is_a_usage_error(demo_node: Path, tmp_path: Path, span: str) -> None:
    done = _run("--node", demo_node, "--lake", tmp_path / "lake", f"--range={span}")
    assert done.exit_code == 2
    assert f"range '{span}'" in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--node", ".", "--packs", "."),
        ("--node", ".", "--range", "1:2", "--to", "5"),
        ("--node", ".", "--to", "5", "--follow"),
        ("--node", ".", "--range", "1:5", "--follow"),
        ("--node", "no-such-folder"),
    ],
)
def test_contradictions_are_usage_errors(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert _run(*arguments, "--lake", tmp_path / "lake").exit_code == 2


def test_a_bad_setting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONLAKE_LAKE_ZSTD_LEVEL", "high")
    done = _run("--node", tmp_path, "--lake", tmp_path / "lake")
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "error: TONLAKE_LAKE_ZSTD_LEVEL: setting [lake] zstd_level = 'high'"
    )


def test_a_folder_that_is_no_node_is_a_data_problem(tmp_path: Path) -> None:
    done = _run("--node", tmp_path, "--lake", tmp_path / "lake")
    assert done.exit_code == 1
    assert "no database folder of a TON node" in done.stderr


def test_a_lake_that_cannot_be_made_is_named(demo_node: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    arguments = ("--node", demo_node, "--range", "1:2", "--lake")
    below = _run(*arguments, file / "lake")
    assert below.exit_code == 1
    assert below.stderr.startswith("error: ")
    assert str(file / "lake") in below.stderr
    assert _run(*arguments, file).exit_code == 2


def test_a_range_beyond_the_node_is_not_called_complete(demo_node: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    beyond = _run("--node", demo_node, "--lake", lake, "--range", "300:310")
    assert beyond.exit_code == 3
    assert beyond.stdout == ""
    assert beyond.stderr == "stopped before masterchain 300: not complete yet\n"
    partly = _run("--node", demo_node, "--lake", lake, "--range", "236:240", "--json")
    assert partly.exit_code == 3
    report = json.loads(partly.stdout)
    assert (report["committed"], report["stopped_at"]) == (["236:238"], 239)
    again = _run("--node", demo_node, "--lake", lake, "--from", 236)
    assert again.exit_code == 0
    assert again.stdout == "masterchain 236:238: nothing new, the lake has it all\n"

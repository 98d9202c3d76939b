"""The command that shows settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from tonlake.api.command.loading import NAMES
from tonlake.api.command.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name.variable, raising=False)


def run(*arguments: object, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["config", *map(str, arguments)], env=env)


def test_help_has_an_example() -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    assert "tonlake config" in shown.output


def test_values_and_origins_are_shown(tmp_path: Path) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text("[http]\nport = 9000\n")
    env = {"TONLAKE_LAKE_ZSTD_LEVEL": "3"}
    text = run("--config", config, env=env).output
    assert "[http]\n" in text
    assert f"port = 9000  ({config})" in text
    assert "zstd_level = 3  (TONLAKE_LAKE_ZSTD_LEVEL)" in text
    assert 'host = "127.0.0.1"  (default)' in text
    rows = json.loads(run("--json", env=env).stdout)
    assert [(row["section"], row["name"]) for row in rows] == list(map(tuple, NAMES))
    assert all(row["doc"] for row in rows)


def test_unknown_settings() -> None:
    done = run(env={"TONLAKE_HTTP_PROT": "1"})
    assert done.exit_code == 1
    assert "did you mean [http] port" in done.stderr

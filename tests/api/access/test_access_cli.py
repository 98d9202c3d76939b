"""The command that manages the key file."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tonlake.api.access.key import find_record, read_keys
from tonlake.api.command.main import main


def run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(main, ["key", *arguments], env=env)


def test_a_key_is_added_listed_and_revoked(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = run("add", "our wallet", "--rps", "25", "--keys", str(path)).stdout.strip()
    record = find_record(read_keys(path), key)
    assert record is not None
    assert (record.name, record.rps) == ("our wallet", 25)
    shown = run("list", TONLAKE_ACCESS_KEYS_FILE=str(path)).stdout
    assert record.id in shown
    assert "our wallet" in shown
    (line,) = json.loads(run("list", "--json", "--keys", str(path)).stdout)
    assert set(line) == {"id", "name", "rps", "made_at"}
    assert run("revoke", record.id, "--keys", str(path)).exit_code == 0
    again = run("revoke", record.id, "--keys", str(path))
    assert again.exit_code == 1
    assert "tonlake key list" in again.stderr
    assert find_record(read_keys(path), key) is None


def test_the_usual_limit(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    run("add", "a", "--keys", str(path))
    assert [record.rps for record in read_keys(path).values()] == [10]


@pytest.mark.parametrize("words", [("add", "x"), ("list",), ("revoke", "x")])
def test_a_file_must_be_named_and_be_readable(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2
    path = tmp_path / "keys.json"
    path.write_text("oops")
    result = run(*words, "--keys", str(path))
    assert result.exit_code == 1
    assert "cannot be read" in result.stderr

"""A user without permission for a file gets an error with its name and advice."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import COMMAND, run_program

RIGHTS = "-dac_override,-dac_read_search"
"""What lets root pass over the rights of files."""


def run(*arguments: object, config: object = "") -> tuple[int, str]:
    """Return the exit code and output of a command without root's permissions."""
    as_user: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv reads every file")
        as_user = ["setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}"]
    env = os.environ | ({"TONLAKE_CONFIG": str(config)} if config else {})
    ended = run_program(*as_user, *COMMAND, *arguments, env=env, timeout=120)
    return ended.returncode, ended.stdout + ended.stderr


@contextmanager
def barred(path: Path, mode: int = 0) -> Iterator[None]:
    """Remove the permissions of a file or folder while the block runs."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


@pytest.fixture
def lake(demo_lake: Path, tmp_path: Path) -> Path:
    return shutil.copytree(demo_lake, tmp_path / "lake")


def check(found: tuple[int, str], code: int, name: str) -> None:
    """Check that a command failed with one line that has the file's name and the right advice."""
    assert found[0] == code, found
    last = found[1].strip().splitlines()[-1]
    assert name in last
    assert "give the user that runs tonlake access to it, with chown or chmod" in last
    assert "Traceback" not in found[1]
    assert "new lake" not in found[1]
    assert "Errno" not in found[1]


def test_a_lake_that_may_not_be_read(lake: Path, tmp_path: Path) -> None:
    with barred(lake):
        check(run("status", "--lake", lake), 2, str(lake))
    with barred(lake / "_log"):
        check(run("serve", "--lake", lake, "--port", 0), 1, "_log")
    (file,) = (lake / "transactions").rglob("*.parquet")
    with barred(file):
        check(run("sql", "--lake", lake, "select sum(total_fees) from transactions"), 1, file.name)
        check(run("export", "--lake", lake, "--to", tmp_path / "copy"), 1, file.name)
        code, text = run("doctor", "--lake", lake)
        assert (code, "1 not readable" in text, "chown or chmod" in text) == (1, True, True)


def test_a_lake_that_may_not_be_written(lake: Path, demo_node: Path) -> None:
    (lake / "_log/leases").unlink(missing_ok=True)
    with barred(lake / "_log", 0o555):
        assert run("verify", "--lake", lake)[0] == 0
        check(run("ingest", "--node", demo_node, "--lake", lake, "--follow"), 1, "_log")


def test_a_node_and_settings_that_may_not_be_read(
    lake: Path, demo_node: Path, tmp_path: Path
) -> None:
    with barred(demo_node):
        check(run("ingest", "--node", demo_node, "--lake", tmp_path / "new"), 2, str(demo_node))
    config = tmp_path / "tonlake.toml"
    config.touch()
    with barred(config):
        given = ("v3/accounts_by_balance", "-p", "limit=1", "--lake", lake)
        check(run("query", *given, config=config), 1, config.name)

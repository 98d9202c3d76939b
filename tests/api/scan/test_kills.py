"""A scan killed with SIGKILL resumes after the last received batch: every row comes once."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

KILLS, LONG_KILLS = 2, 100
SMALL_BATCHES = """
from tonlake.api.command.start import start
from tonlake.lake.scan import scanner
scanner.BATCH_ROWS = 20
start()
"""
"""The command, with more batches than a lake of a test has otherwise."""


def _command(lake: Path, cursor: str | None) -> list[str]:
    options = ["--lake", str(lake), "--columns", "mc_seqno,lt,hash", "--format", "ndjson"]
    start = [] if cursor is None else ["--cursor", cursor]
    return [sys.executable, "-c", SMALL_BATCHES, "scan", "transactions", *options, *start]


def _scan(lake: Path, cursor: str | None, max_bytes: int) -> bytes:
    """Read a number of bytes of a scan, or all of it, and kill it."""
    with subprocess.Popen(
        _command(lake, cursor), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        arrived = process.stdout.read(max_bytes)
        process.kill()
    return arrived


def _list_batches(text: bytes) -> list[tuple[list[Any], str]]:
    """Return the batches that arrived whole: rows, and the cursor behind them."""
    batches: list[tuple[list[Any], str]] = []
    rows: list[Any] = []
    for line in text.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        found = json.loads(line)
        if "@batch" in found:
            batches.append((rows, found["@batch"]["cursor"]))
            rows = []
        else:
            rows.append(found)
    return batches


@pytest.mark.parametrize(
    "kills", [KILLS, pytest.param(LONG_KILLS, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_every_row_comes_once(many_commits: Path, kills: int) -> None:
    whole = _scan(many_commits, None, -1)
    expected = _list_batches(whole)
    assert len(expected) > 20
    chance = random.Random(kills)  # noqa: S311 - no secret
    cursor: str | None = None
    rows: list[Any] = []
    for _ in range(kills):
        batches = _list_batches(_scan(many_commits, cursor, chance.randrange(len(whole) // 4)))
        for more, behind in batches:
            rows += more
            cursor = behind
        if cursor == expected[-1][1]:
            assert rows == [row for batch, _ in expected for row in batch]
            cursor, rows = None, []
    for more, _ in _list_batches(_scan(many_commits, cursor, -1)):
        rows += more
    assert rows == [row for batch, _ in expected for row in batch]

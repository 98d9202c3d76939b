"""The programs of docs/indexer.md run as written."""

import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tonlake
from tests.conftest import ROOT
from tests.lake.chain import commit_made
from tests.lake.rows import make_tables
from tonlake.api.python.lake import Lake
from tonlake.api.python.result import ScanBatch

PAGE = (ROOT / "docs" / "indexer.md").read_text(encoding="utf-8")
VOLUME, NOTES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:2]


class Finite:
    """A lake whose scans end with its newest block: programs that follow have no end."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def scan(self, *arguments: Any, **options: Any) -> Iterator[ScanBatch]:
        """Scan without following."""
        return self._lake.scan(*arguments, **options | {"follow": False})


def _run(program: str, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tonlake, "open", lambda _place: Finite(lake), raising=False)
        exec(program, {})  # noqa: S102 - the page's own text


def test_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run after each commit, as if it was killed between them, and once more without a new one."""
    monkeypatch.chdir(tmp_path)
    for first, day in ((1, "2026-11-18"), (6, "2026-11-19")):
        made = make_tables(first, first + 4, names=("blocks", "dex_swaps"))
        swaps = made["dex_swaps"]
        utimes = pa.array(range(1_795_000_000, 1_795_000_000 + 9 * 20, 9), pa.int64())
        at = swaps.schema.get_field_index("end_utime")
        made["dex_swaps"] = swaps.set_column(at, swaps.schema.field(at), utimes)
        commit_made(tmp_path / "lake", first, first + 4, made, day=day)
        _run(VOLUME, tonlake.open(tmp_path / "lake"), monkeypatch)
    _run(VOLUME, tonlake.open(tmp_path / "lake"), monkeypatch)
    statement = "select count(*), sum(amount_in::double) from dex_swaps where success"
    count, total = tonlake.open(tmp_path / "lake").sql(statement).fetchall()[0]
    found = sqlite3.connect("volume.db").execute("select count(*), sum(amount) from swaps")
    assert found.fetchone() == (count, pytest.approx(total))
    assert count > 10


def test_notifications(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tonlake.open(demo_lake)
    owner, transfers = lake.sql(
        "select ton_address(destination_workchain, destination), count(*) from jetton_transfers"
        " where not aborted group by all order by all desc limit 1"
    ).fetchall()[0]
    monkeypatch.setattr(sys, "argv", ["notifications", owner])
    _run(NOTES, lake, monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.endswith("jetton_transfers")]) == transfers
    messages = lake.sql(
        "select value from messages where direction = 'in'"
        " and ton_address(destination_workchain, destination) = $owner order by mc_seqno, tx_lt",
        owner=owner,
    )
    shown = [line.split()[2] for line in lines if line.endswith(" messages")]
    assert shown == [str(value) for (value,) in messages]

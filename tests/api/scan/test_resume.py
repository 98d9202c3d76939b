"""Scans are stopped and resumed over commits that are added, merged and undone."""

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import tonlake
from tests.api.growth import serve
from tests.patience import compose
from tonlake.api.errors import RequestInvalid
from tonlake.api.python.lake import Lake
from tonlake.api.python.result import ScanBatch
from tonlake.ingest.derive.trace import reopen_traces
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span
from tonlake.lake.errors import BlocksLacking, CursorRefused, LakeCorrupt
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.removal import prune_lake, undo_after
from tonlake.lake.scan import scanner
from tonlake.lake.settings import LakeSettings

TABLES = ("transactions", "actions", "traces")
JOINT = {
    "messages": {"columns": ["mc_seqno", "tx_lt", "value"]},
    "transfer": {"columns": ["amount"]},
    "actions": {"columns": ["action_id"]},
}
SIGNATURE = "transfer#0f8a7ea5 query_id:uint64 amount:Coins = Body"
CHOSEN: list[str | dict[str, Any]] = [*TABLES, JOINT]
FOLLOWED: list[str | dict[str, Any]] = ["messages", "traces", JOINT]
"""A table of each kind: of blocks, of what may span several, and several at once."""
RUNS = 2
NDJSON = {"Accept": "application/x-ndjson"}
SETTINGS = compose(ingest={"mc_blocks_per_commit": 10, "mc_blocks_per_chunk": 10})


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BATCH_ROWS", 20)


@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize("table", CHOSEN, ids=[*TABLES, "joint"])
def test_every_row_once(many_commits: Path, table: str | dict[str, Any]) -> None:
    """A scan that ends after any of its batches resumes after it, several times in each run."""
    lake, chance = tonlake.open(many_commits), random.Random(str(table))  # noqa: S311 - no secret
    whole = _join(list(lake.scan(table, signature=SIGNATURE)))
    for _ in range(RUNS):
        taken: list[ScanBatch] = []
        cursor = None
        while cursor is None or taken[-1].height < lake.ranges[-1][1]:
            batches = lake.scan(table, cursor=cursor, signature=SIGNATURE)
            taken += [batch for batch, _ in zip(batches, range(chance.randint(1, 9)), strict=False)]
            cursor = taken[-1].cursor
        assert _join(taken).equals(whole)


def _join(batches: list[ScanBatch]) -> pa.Table:
    return pa.concat_tables(batch.rows.arrow() for batch in batches).combine_chunks()


class Reader:
    """Someone who follows a table, is killed now and then, and keeps rows with the cursor."""

    def __init__(self, lake_dir: Path, table: str | dict[str, Any], chance: random.Random) -> None:
        self._lake_dir, self._table, self._chance = lake_dir, table, chance
        self._rows: list[dict[str, Any]] = []
        self.cursor: str | None = None
        self.undone = 0
        self.kills = 0
        self._batches: Iterator[ScanBatch] = iter(())

    def read(self, last: int) -> None:
        """Read until block ``last``, as it is now."""
        while True:
            if self._chance.random() < 0.3:  # killed
                self._batches = iter(())
                self.kills += self.cursor is not None
            batch = next(self._batches, None)
            if batch is None:
                lake = tonlake.open(self._lake_dir)
                options = {"start": 1} if self.cursor is None else {"cursor": self.cursor}
                self._batches = lake.scan(self._table, signature=SIGNATURE, follow=True, **options)
                continue
            height = "mc_seqno_end" if self._table == "traces" else "mc_seqno"
            if batch.undone is not None:
                self.undone += 1
                self._rows = [row for row in self._rows if row[height] < batch.undone[0]]
            self._rows += batch.rows.arrow().to_pylist()
            self.cursor = batch.cursor
            if batch.height == last:
                return

    def check(self, lake: Lake) -> None:
        """Compare what is kept with the lake as it is."""
        found = list(lake.scan(self._table, signature=SIGNATURE, start=1))
        assert self._rows == _join(found).to_pylist()


@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize("seed", [5, *(pytest.param(at, marks=pytest.mark.long) for at in (6, 7))])
def test_a_chain_that_is_undone(demo_node: Path, tmp_path: Path, seed: int) -> None:
    """Followers are killed about 25 times in a run."""
    chance, lake_dir = random.Random(seed), tmp_path / "lake"  # noqa: S311 - no secret
    readers = [Reader(lake_dir, table, chance) for table in FOLLOWED]
    last = 0
    with closing(open_node(demo_node)) as source:
        for step in range(6):  # the last one undoes blocks
            last += chance.choice((10, 20))
            first = read_state(lake_dir).ranges[-1][1] + 1 if step else 1
            ingest(source, lake_dir, Span(first, last), SETTINGS)
            chosen = chance.sample(readers, 2) if step < 5 else readers
            for reader in chosen:
                reader.read(last)
            if step % 3 == 1:
                compact_lake(lake_dir, LakeSettings())
            if step % 3 == 2:
                last -= chance.choice((5, 15, 25))
                _undo(lake_dir, last)
    lake = tonlake.open(lake_dir)
    for reader in readers:
        reader.read(lake.ranges[-1][1])
        reader.check(lake)
        assert reader.undone
    assert sum(reader.kills for reader in readers) >= 8


def _undo(lake_dir: Path, last_kept: int) -> None:
    commit = undo_after(
        lake_dir,
        last_kept,
        LakeSettings(),
        max_mc_blocks=1000,
        source={},
        reopen=lambda state, first: reopen_traces(lake_dir, state, first),
    )
    assert commit is not None


@pytest.mark.usefixtures("_small_batches")
def test_nothing_comes_behind_a_limit(many_commits: Path) -> None:
    lake = tonlake.open(many_commits)
    whole, found = (_join(list(lake.scan("blocks", limit=limit))) for limit in (None, 30))
    assert 30 <= found.num_rows < 40
    assert found.equals(whole.slice(0, found.num_rows))
    body = {"table": "blocks", "limit": 30}
    with serve(many_commits) as server:
        answer = httpx.post(f"{server.url}/api/scan", json=body, timeout=60)
    assert pa.ipc.open_stream(answer.content).read_all().equals(found)


def test_a_cursor_behind_the_last_block(many_commits: Path, tmp_path: Path) -> None:
    """It is refused, as a first block there is, unless blocks up to it were undone."""
    place = shutil.copytree(many_commits, tmp_path / "lake")
    lake = tonlake.open(place)
    *_, batch = lake.scan("blocks")
    height, rest = batch.height, batch.cursor.partition("-")[2]
    assert list(lake.scan("blocks", cursor=batch.cursor)) == []
    for cursor, stop in ((f"{height + 9}-{rest}", None), (batch.cursor, height - 5)):
        with pytest.raises(RequestInvalid, match="after its last one"):
            next(lake.scan("blocks", cursor=cursor, stop=stop))
    _undo(place, height - 5)
    found = list(tonlake.open(place).scan("blocks", cursor=batch.cursor))
    assert [(one.undone, one.height) for one in found] == [((height - 4, height), height - 5)]


@pytest.mark.parametrize("start", ["2130-01-01", "snapshot:6", 91])
def test_a_scan_of_no_blocks_has_a_cursor(many_commits: Path, start: str | int) -> None:
    """From after the newest block: what continues there reads all that comes later."""
    lake = tonlake.open(many_commits)
    *_, newest = lake.scan("blocks")
    found = list(lake.scan("blocks", start=start))
    assert [(len(one.rows), one.cursor) for one in found] == [(0, newest.cursor)]
    body = {"table": "blocks", "from": start}
    with serve(many_commits) as server:
        answer = httpx.post(f"{server.url}/api/scan", json=body, headers=NDJSON, timeout=60)
    assert answer.json()["@batch"]["cursor"] == newest.cursor
    assert list(lake.scan("blocks", cursor=newest.cursor)) == []


def test_a_cursor_before_what_was_pruned(many_commits: Path, tmp_path: Path) -> None:
    place = shutil.copytree(many_commits, tmp_path / "lake")
    before = next(tonlake.open(place).scan("blocks", limit=1))
    prune_lake(place, 30, LakeSettings())
    lake = tonlake.open(place)
    first, last = lake.ranges[0]
    assert first > before.height + 1
    text = f"block {before.height + 1} is not in the lake, which has {first}..{last}: start"
    for follow in (False, True):
        with pytest.raises(BlocksLacking, match=text):
            next(lake.scan("blocks", cursor=before.cursor, follow=follow))
    assert next(lake.scan("blocks")).height == last


def test_a_cursor_of_another_lake(many_commits: Path, demo_lake: Path) -> None:
    *_, batch = tonlake.open(many_commits).scan("blocks")
    with pytest.raises(CursorRefused, match="is of commit 6, but the lake has"):
        next(tonlake.open(demo_lake).scan("blocks", cursor=batch.cursor))
    *_, batch = tonlake.open(demo_lake).scan("blocks")
    with pytest.raises(CursorRefused, match="is of another lake: start again"):
        next(tonlake.open(many_commits).scan("blocks", cursor=batch.cursor))


def test_a_file_that_is_missing_or_damaged_is_named(many_commits: Path, tmp_path: Path) -> None:
    place = shutil.copytree(many_commits, tmp_path / "lake")
    first, *_, last = (place / file.path for file in read_state(place).by_table["blocks"])
    data = last.read_bytes()
    lake = tonlake.open(place)
    last.write_bytes(data[: len(data) // 2])
    with pytest.raises(LakeCorrupt, match=last.name):
        list(lake.scan("blocks"))
    last.write_bytes(data)
    lake = tonlake.open(place)
    first.unlink()
    with pytest.raises(LakeCorrupt, match=first.name):
        list(lake.scan("blocks"))

"""Orphans are found, kept for the grace period, then removed; live files are never touched."""

import os
import time
from pathlib import Path

import pytest

from tests.lake.rows import commit_rows, file_bytes
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.state import SEGMENT_FOLDER, read_state
from tonlake.lake.maintenance.orphan import list_orphans, sweep_orphans

LEFT = [
    "blocks/day=2024-01-02/1-10-00.parquet",
    "blocks/day=2024-01-02/.tmp-1-aa",
    "messages/day=2024-01-30/7-8-00.parquet",
    "_log/.tmp-2-bb",
]
KEPT = ["views.sql", "catalog.duckdb", "notes/day=2024-01-01/mine.parquet", "blocks/readme.txt"]


@pytest.fixture
def littered(lake: Path) -> Path:
    """A lake with orphans an hour old, and files of the operator."""
    for name in LEFT + KEPT:
        path = lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        hour_ago = time.time() - 3600
        os.utime(path, (hour_ago, hour_ago))
    return lake


def test_orphans_are_listed(littered: Path) -> None:
    found = list_orphans(littered, read_state(littered))
    assert [str(path.relative_to(littered)) for path in found] == sorted(LEFT)


def test_only_old_orphans_are_removed(littered: Path) -> None:
    before = file_bytes(littered)
    assert sweep_orphans(littered, 7200) == []
    (littered / LEFT[0]).write_text("just written")
    removed = sweep_orphans(littered, 1800)
    assert {str(path.relative_to(littered)) for path in removed} == set(LEFT[1:])
    after = file_bytes(littered)
    assert set(before) - set(after) == set(LEFT[1:])
    assert sweep_orphans(littered, 0) == [littered / LEFT[0]]


def test_a_temporary_folder_goes_with_all_in_it(lake: Path) -> None:
    folder = lake / SEGMENT_FOLDER / ".tmp-sorting"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "0").write_text("rows")
    assert sweep_orphans(lake, 0) == [folder]
    assert not folder.exists()


def test_files_before_the_first_commit_are_orphans(tmp_path: Path) -> None:
    commit_rows(tmp_path, 1, 3, tables=["blocks"])
    (tmp_path / "_log" / "1.json").unlink()
    assert len(sweep_orphans(tmp_path, 0)) == 1


def test_no_lake_no_sweep(tmp_path: Path) -> None:
    assert sweep_orphans(tmp_path, 0) == []
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_swept_while_another_writes(littered: Path) -> None:
    with hold_lock(littered / LOCK_FILE):
        assert sweep_orphans(littered, 0) == []
    assert len(sweep_orphans(littered, 0)) == len(LEFT)


def test_a_damaged_log_stops_the_sweep(littered: Path) -> None:
    (littered / "_log" / "3.json").write_text("{}")
    before = file_bytes(littered)
    with pytest.raises(LakeCorrupt):
        sweep_orphans(littered, 0)
    assert file_bytes(littered) == before

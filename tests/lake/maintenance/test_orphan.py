"""Orphans are found, kept for the grace period, then removed; live files are never touched."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from tests.lake.rows import commit_rows, file_bytes
from tonlake.lake.commit import commit
from tonlake.lake.errors import LakeCorrupt, SnapshotNotFound
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, temporary_folder
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import SEGMENT_FOLDER, LogReader, list_log, read_state
from tonlake.lake.maintenance import orphan
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import Sweeper, list_orphans, sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

LEFT = [
    "blocks/day=2024-01-02/1-10-00.parquet",
    "blocks/day=2024-01-02/.tmp-1-aa",
    "messages/day=2024-01-30/7-8-00.parquet",
    "_log/.tmp-2-bb",
    ".tmp-3-_follow.json",
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
    assert sweep_orphans(littered, LakeSettings(orphan_grace_s=7200)) == []
    (littered / LEFT[0]).write_text("just written")
    removed = sweep_orphans(littered, LakeSettings(orphan_grace_s=1800))
    assert {str(path.relative_to(littered)) for path in removed} == set(LEFT[1:])
    after = file_bytes(littered)
    assert set(before) - set(after) == set(LEFT[1:])
    assert sweep_orphans(littered, LakeSettings(orphan_grace_s=0)) == [littered / LEFT[0]]


def test_a_temporary_folder_goes_with_all_in_it(lake: Path) -> None:
    folder = lake / SEGMENT_FOLDER / ".tmp-sorting"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "0").write_text("rows")
    assert sweep_orphans(lake, LakeSettings(orphan_grace_s=0)) == [folder]
    assert not folder.exists()


def test_the_folder_of_a_process_stays_as_long_as_the_process(lake: Path) -> None:
    with temporary_folder(lake) as folder:
        os.utime(folder, (0, 0))
        left = shutil.copytree(folder, folder.with_name(".tmp-killed"))
        assert sweep_orphans(lake, LakeSettings(orphan_grace_s=3600)) == [left]
        assert folder.exists()
    assert not folder.exists()


def test_before_the_first_commit_all_files_are_orphans(tmp_path: Path) -> None:
    assert sweep_orphans(tmp_path, LakeSettings(orphan_grace_s=0)) == []
    assert list(tmp_path.iterdir()) == []
    commit_rows(tmp_path, 1, 3, tables=["blocks"])
    (tmp_path / "_log" / "1.json").unlink()
    assert len(sweep_orphans(tmp_path, LakeSettings(orphan_grace_s=0))) == 1


def test_nothing_is_swept_while_another_writes(littered: Path) -> None:
    with hold_lock(littered / LOCK_FILE):
        assert sweep_orphans(littered, LakeSettings(orphan_grace_s=0)) == []
    assert len(sweep_orphans(littered, LakeSettings(orphan_grace_s=0))) == len(LEFT)


def test_a_damaged_log_stops_the_sweep(littered: Path) -> None:
    (littered / "_log" / "3.json").write_text("{}")
    before = file_bytes(littered)
    with pytest.raises(LakeCorrupt):
        sweep_orphans(littered, LakeSettings(orphan_grace_s=0))
    assert file_bytes(littered) == before


AT_ONCE = LakeSettings(orphan_grace_s=0, log_entries=3, log_age_s=0, compact_rows=10**6)


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A lake of nine commits with checkpoints after 2, 4, 6 and 8, merged by a tenth."""
    with mock.patch.object(commit, "CHECKPOINT_COMMITS", 2):
        for at in range(1, 10):
            commit_rows(tmp_path, at, at, rows=1, tables=("blocks",), day="2024-01-01")
        compact_lake(tmp_path, AT_ONCE)
    return tmp_path


def test_replaced_files_go_sooner_than_unknown_ones(long: Path) -> None:
    unknown = long / "blocks/day=2024-01-01/1-3-00.parquet"
    unknown.write_text("x")
    (long / "_log/3.json").write_bytes(b"\xff{")
    assert len(sweep_orphans(long, LakeSettings())) == 0
    assert len(sweep_orphans(long, LakeSettings(replaced_grace_s=0))) == 9
    assert unknown.exists()


def test_a_sweeper_lists_all_files_rarely(tmp_path: Path) -> None:
    up_s, litter = 0.0, tmp_path / "blocks/day=2024-01-01/.tmp-1-aa"
    with (
        mock.patch("time.monotonic", side_effect=lambda: up_s),
        mock.patch.object(orphan, "list_orphans", wraps=list_orphans) as listed,
    ):
        sweeper = Sweeper(tmp_path, LakeSettings(replaced_grace_s=0, orphan_grace_s=100))
        for at in range(1, 8):
            commit_rows(tmp_path, at, at, rows=1, tables=("blocks",), day="2024-01-01")
            if at == 4:
                leased = open_snapshot(tmp_path, 3)
                litter.write_text("x")
                os.utime(litter, (0, 0))
            if at in (4, 6):
                compact_lake(tmp_path, AT_ONCE)
            up_s += 10
            assert [sweeper.sweep_if_due(), sweeper.sweep_if_due()] == [True, False]
        left = list_orphans(tmp_path, read_state(tmp_path))
        assert [listed.call_count, left] == [1, [litter]]
        assert len(list(litter.parent.glob("*.parquet"))) == 5, "two live, and three leased"
        del leased
        for _ in range(2):
            up_s += 100
            sweeper.sweep_if_due()
        assert listed.call_count == 3
        assert len(list(litter.parent.iterdir())) == 2


def test_files_of_an_open_snapshot_stay(long: Path) -> None:
    old = open_snapshot(long, 5)
    removed = {path.name for path in sweep_orphans(long, AT_ONCE)}
    live = {file.path.rsplit("/", 1)[1] for file in old.state.files}
    assert len(removed) == 4
    assert not removed & live
    assert open_snapshot(long, 5).damaged == {}
    assert list_log(long)[0] == [*range(4, 11)]
    with mock.patch.object(orphan, "LEASED_COMMITS", 3):
        assert len(sweep_orphans(long, AT_ONCE)) == 5
    del old
    sweep_orphans(long, AT_ONCE)
    assert list_log(long)[0] == [*range(6, 11)]


def test_a_long_log_begins_with_a_checkpoint(long: Path) -> None:
    reader, idle = LogReader(long), LogReader(long)
    before = {at: read_state(long, at) for at in range(6, 11)}
    assert reader.read() == before[10]
    idle._state = read_state(long, 3)
    sweep_orphans(long, AT_ONCE)
    assert list_log(long) == ([*range(6, 11)], [6, 8, 10])
    assert {at: read_state(long, at) for at in range(6, 11)} == before
    with pytest.raises(SnapshotNotFound, match="commits 6 to 10, and no 5"):
        read_state(long, 5)
    assert reader.read() == idle.read() == before[10]
    assert [one.number for one in open_snapshot(long).commits] == [6, 7, 8, 9, 10]
    report = verify_lake(long)
    assert (report.damage, report.commits, report.orphans) == ([], 10, [])


def test_settings_and_delta_logs_keep_entries(long: Path) -> None:
    for settings in (LakeSettings(log_entries=3), LakeSettings(log_age_s=0)):
        sweep_orphans(long, settings)
        assert list_log(long)[0] == [*range(1, 11)]
    with mock.patch.object(orphan, "find_published", return_value=5):
        sweep_orphans(long, AT_ONCE)
    assert list_log(long)[0][0] == 4


def test_an_interrupted_sweep_of_the_log_is_no_damage(long: Path) -> None:
    names: list[int] = []
    for count in range(1, 9):

        def stop(point: str, count: int = count) -> None:
            names.append(count)
            if point == "sweep.shortened" and names.count(count) > count:
                raise KeyboardInterrupt

        with mock.patch.object(orphan, "reach", stop), suppress(KeyboardInterrupt):
            sweep_orphans(long, AT_ONCE)
        assert read_state(long).number == 10
        assert verify_lake(long).damage == []
    sweep_orphans(long, AT_ONCE)
    assert list_log(long)[0] == [*range(6, 11)]


def test_a_damaged_start_is_reported(long: Path) -> None:
    sweep_orphans(long, AT_ONCE)
    start = long / "_log/6.checkpoint.json"
    start.write_bytes((long / "_log/8.checkpoint.json").read_bytes())
    assert [damage.file for damage in verify_lake(long).damage] == ["_log/6.checkpoint.json"]
    assert read_state(long).number == 10

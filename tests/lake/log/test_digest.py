"""Files that change are found: before they are read, while a lake is open, and over a day."""

import logging
import os
import time
from pathlib import Path

import pytest

from tests.damage import flip_file
from tests.lake.rows import commit_rows
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.digest import Recheck
from tonlake.lake.log.snapshot import REST, FileWatch, Snapshot, open_snapshot
from tonlake.lake.log.state import DataFile

GROUP = "blocks"


class _Clock:
    """A manual clock that also advances a little on every reading."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.looks = 0

    def __call__(self) -> float:
        self.now_s += 0.001
        self.looks += 1
        return self.now_s


@pytest.fixture
def files(tmp_path: Path) -> tuple[DataFile, ...]:
    for first in (1, 5):
        commit_rows(tmp_path, first, first + 3)
    return open_snapshot(tmp_path).files[GROUP]


def _flip(path: Path, *, keep_mtime: bool = False) -> None:
    facts = path.stat()
    flip_file(path, bits=4)
    if keep_mtime:
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("keep_mtime", [False, True])
def test_a_flipped_bit_is_named(
    tmp_path: Path, files: tuple[DataFile, ...], *, keep_mtime: bool
) -> None:
    watch = FileWatch(tmp_path, {GROUP: files})
    watch.check(GROUP)
    assert not watch.damaged
    _flip(tmp_path / files[1].path, keep_mtime=keep_mtime)
    watch = FileWatch(tmp_path, {GROUP: files})
    for _ in range(2):
        with pytest.raises(LakeCorrupt, match=files[1].path):
            watch.check(GROUP)
    assert watch.damaged
    watch.check("of no files")


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_file_written_again_or_removed_by_maintenance_is_no_damage(
    tmp_path: Path, files: tuple[DataFile, ...], *, is_removed: bool
) -> None:
    path = tmp_path / files[0].path
    data = path.read_bytes()
    path.unlink()
    if not is_removed:
        path.write_bytes(data)
    watch = FileWatch(tmp_path, {GROUP: files})
    watch.check(GROUP)
    assert not watch.damaged


def test_sweeps_take_a_bounded_share_of_the_time(
    tmp_path: Path, files: tuple[DataFile, ...]
) -> None:
    clock = _Clock()
    watch = FileWatch(tmp_path, {GROUP: files}, clock)
    watch.check(GROUP)
    sweep_s = clock.now_s / 2
    _flip(tmp_path / files[0].path)
    while clock.now_s < (REST - 1) * sweep_s:
        watch.check(GROUP)
    clock.now_s += 3 * sweep_s
    with pytest.raises(LakeCorrupt):
        watch.check(GROUP)


def test_a_lake_opened_without_digests_is_not_watched(
    tmp_path: Path, files: tuple[DataFile, ...]
) -> None:
    snapshot = open_snapshot(tmp_path, check_digests=False)
    _flip(tmp_path / files[0].path)
    snapshot.watch.check(GROUP)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    for first in (1, 5):
        commit_rows(tmp_path, first, first + 3)
    return open_snapshot(tmp_path)


def _count_files(snapshot: Snapshot) -> int:
    return sum(map(len, snapshot.files.values())) + len(snapshot.segments)


def test_a_round_reads_every_file_in_the_period(snapshot: Snapshot) -> None:
    recheck = Recheck(lambda: snapshot, 100.0)
    assert sum(recheck.check_round()) == pytest.approx(100.0)
    assert recheck.checked_files == _count_files(snapshot) > 10
    assert recheck.damaged_files == 0
    assert not snapshot.watch.damaged


def test_a_damaged_file_is_named_and_its_snapshot_withdrawn(
    snapshot: Snapshot, caplog: pytest.LogCaptureFixture
) -> None:
    path = snapshot.files["blocks"][0].path
    flip_file(snapshot.lake_dir / path, -20)
    recheck = Recheck(lambda: snapshot, 1.0)
    with caplog.at_level(logging.ERROR):
        for _ in recheck.check_round():
            pass
    assert path in caplog.text
    assert recheck.damaged_files == 1
    assert snapshot.watch.damaged
    assert set(open_snapshot(snapshot.lake_dir).damaged) == {"blocks"}


def test_what_cannot_be_read_is_damage_and_what_is_gone_is_not(snapshot: Snapshot) -> None:
    gone, folder = (file.path for file in snapshot.files["blocks"])
    (snapshot.lake_dir / gone).unlink()
    (snapshot.lake_dir / folder).unlink()
    (snapshot.lake_dir / folder).mkdir()
    recheck = Recheck(lambda: snapshot, 1.0)
    for _ in recheck.check_round():
        pass
    assert recheck.damaged_files == 1


def test_the_thread_goes_round_until_it_is_stopped(snapshot: Snapshot) -> None:
    recheck = Recheck(lambda: snapshot, 0.01)
    recheck.start()
    deadline_s = time.monotonic() + 30
    while recheck.checked_files < _count_files(snapshot) and time.monotonic() < deadline_s:
        os.sched_yield()
    recheck.stop()
    assert recheck.checked_files >= _count_files(snapshot)


def test_a_period_of_zero_never_reads(snapshot: Snapshot) -> None:
    recheck = Recheck(lambda: snapshot, 0)
    recheck.start()
    recheck.stop()
    assert recheck.checked_files == 0


def test_without_a_snapshot_there_is_nothing_to_read() -> None:
    assert list(Recheck(lambda: None, 1.0).check_round()) == []

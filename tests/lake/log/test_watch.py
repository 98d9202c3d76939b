"""Changed files of an open snapshot are detected by mtime, then by digest."""

import os
from pathlib import Path

import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.snapshot import REST, FileWatch, open_snapshot
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
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
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


def test_the_same_bytes_written_again_are_sound(
    tmp_path: Path, files: tuple[DataFile, ...]
) -> None:
    path = tmp_path / files[0].path
    path.write_bytes(path.read_bytes())
    watch = FileWatch(tmp_path, {GROUP: files})
    watch.check(GROUP)
    assert not watch.damaged


def test_a_file_that_maintenance_removed_is_no_damage(
    tmp_path: Path, files: tuple[DataFile, ...]
) -> None:
    (tmp_path / files[0].path).unlink()
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

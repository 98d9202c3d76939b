"""Bit rot that leaves the mtime unchanged is found by reading the file again."""

import logging
import os
import time
from pathlib import Path

import pytest

from tests.lake.rows import commit_rows
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.maintenance.recheck import Recheck


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
    data = bytearray((snapshot.lake_dir / path).read_bytes())
    data[-20] ^= 1
    (snapshot.lake_dir / path).write_bytes(data)
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

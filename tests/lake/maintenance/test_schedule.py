"""Maintenance: the index covers the newest commits, small files are merged."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import msgspec

from tests.ingest.simulator.service import MAINTENANCE, find_child
from tests.lake.chain import Chain, commit_chain
from tests.patience import wait_for
from tonlake.lake.command.status import IndexStatus, read_status
from tonlake.lake.index.index import open_segments
from tonlake.lake.log.place import list_places
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogReader, read_commit, read_state
from tonlake.lake.maintenance import schedule
from tonlake.lake.maintenance.schedule import Maintenance, maintain_once
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

OPTIONS = LakeSettings(maintenance_commits=4, compact_commits=4, compact_rows=1000)


def read_lookups(lake: Path) -> IndexStatus:
    snapshot = open_snapshot(lake)
    return read_status(snapshot, read_commit(lake, snapshot.number)[0]).lookups


def test_one_process_works_at_first_and_when_enough_was_committed(tmp_path: Path) -> None:
    lake, chain, failures = tmp_path / "lake", Chain(3), list[str]()
    kept, seen = Maintenance(lake, OPTIONS, failures.append), set[int | None]()
    for at in range(1, 12):
        commit_chain(lake, chain, at, at)
        kept.count(1)
        kept.wait()
        seen.add(find_child(os.getpid(), MAINTENANCE))
    assert len(seen) == 1
    assert None not in seen
    kept.close()
    assert not failures
    assert find_child(os.getpid(), MAINTENANCE) is None
    status = read_lookups(lake)
    assert status.missing == ((10, 11),)
    assert status.rows + status.rows_missing == sum(
        file.rows for file in read_state(lake).files if file.table == "transactions"
    )
    assert len(list_places(read_state(lake))) < 8
    lookups = open_segments(open_snapshot(lake), OPTIONS)
    assert lookups is not None
    assert not lookups.stale
    assert not verify_lake(lake).damage


def test_those_that_end_early_leave_nothing_behind(tmp_path: Path) -> None:
    lake, chain, failures = tmp_path / "lake", Chain(6), list[str]()
    for at in range(1, 6):
        commit_chain(lake, chain, at, at)
        short_lived = Maintenance(lake, OPTIONS, failures.append)
        short_lived.count(1)
        short_lived.close()
    assert not failures
    assert read_lookups(lake).missing == ()
    assert len(list_places(read_state(lake))) < 5


def test_it_can_be_left_out(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(4)
    never = Maintenance(lake, msgspec.structs.replace(OPTIONS, maintenance_commits=0), print)
    for at in range(1, 6):
        commit_chain(lake, chain, at, at)
        never.count(1)
    never.wait()
    maintain_once(
        LogReader(lake), msgspec.structs.replace(OPTIONS, build_index=False, compact_commits=0)
    )
    assert read_state(lake).number == 5
    assert read_lookups(lake).missing == ((1, 5),)


def test_a_failure_is_reported_and_work_is_tried_again(tmp_path: Path) -> None:
    lake, chain, failures = tmp_path / "lake", Chain(5), list[str]()
    kept = Maintenance(lake, OPTIONS, failures.append)
    for at in range(1, 5):
        commit_chain(lake, chain, at, at)
    file = next(file for file in read_state(lake).files if file.table == "transactions")
    data = (lake / file.path).read_bytes()
    (lake / file.path).write_bytes(data[:-1])
    kept.count(4)
    kept.wait()
    assert len(failures) == 1
    assert file.path in failures[0]
    (lake / file.path).write_bytes(data)
    kept.count(4)
    kept.close()
    assert len(failures) == 1
    assert read_lookups(lake).missing == ()


@mock.patch.object(schedule, "WAITS_S", 0)
def test_a_commit_waits_for_others_no_longer_than_said(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(6)
    kept = Maintenance(lake, OPTIONS, print)
    for at in (1, 2):
        commit_chain(lake, chain, at, at)
        kept.count(1)
        kept.wait()
        assert read_lookups(lake).missing == ()
    kept.count(0)
    kept.close()


def test_a_process_that_dies_is_reported_and_started_again(tmp_path: Path) -> None:
    lake, chain, failures = tmp_path / "lake", Chain(7), list[str]()
    kept = Maintenance(lake, OPTIONS, failures.append)
    commit_chain(lake, chain, 1, 1)
    kept.count(1)
    os.kill(wait_for(lambda: find_child(os.getpid(), MAINTENANCE)), signal.SIGKILL)
    kept.wait()
    assert len(failures) == 1
    assert "-9" in failures[0]
    kept.count(OPTIONS.maintenance_commits)
    kept.close()
    assert len(failures) == 1
    assert read_lookups(lake).missing == ()


def test_a_process_that_took_much_memory_ends_with_its_work(tmp_path: Path) -> None:
    lake, chain = tmp_path / "lake", Chain(10)
    commit_chain(lake, chain, 1, 1)
    command = [sys.executable, "-c", _GREEDY, str(lake)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(OPTIONS) + b"\n")
        process.stdin.flush()
        answer = process.stdout.read()  # to its end, while it could be asked for more
    assert process.returncode == 0
    assert msgspec.json.decode(answer) == {"failure": "", "ends": True}
    assert read_lookups(lake).missing == ()


_GREEDY = """
from tonlake.lake.maintenance import schedule
schedule.MAX_MIB = 1
schedule.main()
"""

"""Worker processes: a dead one is reported, loses nothing, and none outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.ingest.run.test_pipeline import SMALL
from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.errors import SourceError, WorkerLost
from tonlake.ingest.run.pipeline import Progress, ingest
from tonlake.ingest.run.workers import MANY_MC_BLOCKS, Workers, count_workers, start_workers
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.lake.maintenance.verify import verify_lake


def end_process(number: int) -> int:
    """Do as a process does that the kernel kills, as for its memory, when it is asked for 3."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def double(number: int) -> int:
    return number * 2


def find_pid(_number: int) -> int:
    return os.getpid()


def open_nothing() -> BlockSource:
    raise SourceError("there is no such folder")


def test_work_comes_back_in_order(tmp_path: Path) -> None:
    with closing(Workers(2, tmp_path, open_nothing)) as workers:
        assert list(workers.map(double, range(50))) == list(range(0, 100, 2))


def test_a_worker_that_dies_is_named(tmp_path: Path) -> None:
    with (
        closing(Workers(2, tmp_path, open_nothing)) as workers,
        pytest.raises(WorkerLost, match=r"process \d+ ended with signal 9"),
    ):
        list(workers.map(end_process, range(5)))


def test_workers_leave_no_folder_behind(
    demo_node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with closing(Workers(2, tmp_path, partial(open_node, demo_node))) as workers:
        assert list(workers.read(Span(1, 40), SMALL.ingest))
        assert list(scratch.iterdir())
    assert not list(scratch.iterdir())


def test_errors_of_the_source_reach_the_coordinator(tmp_path: Path) -> None:
    with (
        closing(Workers(2, tmp_path, open_nothing)) as workers,
        pytest.raises(SourceError, match="no such folder"),
    ):
        list(workers.read(Span(1, 10), SMALL.ingest))


def test_a_lake_goes_on_after_a_worker_died(demo_node: Path, tmp_path: Path) -> None:
    """What was committed stays, and the same command ends with the files of an undisturbed run."""
    lake, undisturbed = tmp_path / "lake", tmp_path / "undisturbed"
    span = Span(1, 120)
    with closing(Workers(2, lake, partial(open_node, demo_node))) as workers:
        victim = next(workers.map(find_pid, [0]))

        def kill(_progress: Progress) -> None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

        with closing(open_node(demo_node)) as source, pytest.raises(WorkerLost, match=str(victim)):
            ingest(source, lake, span, SMALL, kill, workers=workers)
    assert not verify_lake(lake).damage
    with closing(open_node(demo_node)) as source:
        again = ingest(source, lake, span, SMALL)
        ingest(source, undisturbed, span, SMALL)
    assert again.skipped
    assert list_files(lake) == list_files(undisturbed)


def list_files(lake: Path) -> set[str]:
    """Return the names of data files, which have their digests in them."""
    return {path.relative_to(lake).as_posix() for path in lake.glob("*/*/*.parquet")}


_PARENT = """
import sys, time
from pathlib import Path
from tests.ingest.run.test_workers import open_nothing, find_pid
from tonlake.ingest.run.workers import Workers

if __name__ == "__main__":
    workers = Workers(2, Path(sys.argv[1]), open_nothing)
    print(*set(workers.map(find_pid, range(8))), flush=True)
    time.sleep(60)
"""


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert pids
        parent.kill()
        parent.wait()
    deadline_s = time.monotonic() + 20
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline_s, "a worker outlives its parent"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_few_blocks_and_lite_servers_need_no_workers(tmp_path: Path) -> None:
    assert count_workers(Span(1, MANY_MC_BLOCKS - 1)) == 1
    assert count_workers(Span(1, MANY_MC_BLOCKS)) == os.cpu_count()
    with start_workers(Origin(node=tmp_path), tmp_path, SMALL, 1) as workers:
        assert workers is None
    with start_workers(Origin(liteserver=tmp_path), tmp_path, SMALL, 4) as workers:
        assert workers is None

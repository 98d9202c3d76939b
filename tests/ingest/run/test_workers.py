"""Worker processes: a dead one is reported, loses nothing, and none outlives its parent."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.run.test_pipeline import SMALL
from tests.ingest.simulator.service import is_alive
from tests.patience import wait_for
from tonlake.ingest.assemble.batch import Piece
from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.errors import IngestError, SourceError
from tonlake.ingest.run.pipeline import Progress, ingest
from tonlake.ingest.run.workers import (
    MANY_MC_BLOCKS,
    ReadAhead,
    SpanPart,
    Workers,
    count_workers,
    cut_span,
    start_workers,
)
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
        pytest.raises(IngestError, match=r"process \d+ ended with signal 9"),
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

        with closing(open_node(demo_node)) as source, pytest.raises(IngestError, match=str(victim)):
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
    wait_for(lambda: not any(map(is_alive, pids)), 20)


def test_few_blocks_and_lite_servers_need_no_workers(tmp_path: Path) -> None:
    assert count_workers(Span(1, MANY_MC_BLOCKS - 1)) == 1
    assert count_workers(Span(1, MANY_MC_BLOCKS)) == os.cpu_count()
    with start_workers(Origin(node=tmp_path), tmp_path, SMALL, 1) as workers:
        assert workers is None
    with start_workers(Origin(liteserver=tmp_path), tmp_path, SMALL, 4) as workers:
        assert workers is None


PART_MC_BLOCKS, BLOCK_BYTES = 3, 10


class Reader:
    """Reads ranges in threads, a few blocks at a time, and records the maximum read."""

    def __init__(self, pool: ThreadPoolExecutor, fails_at: int | None = None) -> None:
        self._pool = pool
        self._fails_at = fails_at
        self._lock = threading.Lock()
        self.busy = self.max_busy = 0
        self.begun: list[Span] = []

    def submit(self, span: Span) -> Future[SpanPart]:
        with self._lock:
            self.begun.append(span)
            self.busy += 1
            self.max_busy = max(self.max_busy, self.busy)
        return self._pool.submit(self._read, span)

    def _read(self, span: Span) -> SpanPart:
        with self._lock:
            self.busy -= 1
        if self._fails_at is not None and span.first <= self._fails_at <= span.last:
            raise SourceError(f"block {self._fails_at}")
        last = min(span.last, span.first + PART_MC_BLOCKS - 1)
        pieces = [Piece(seqno, seqno, {}) for seqno in range(span.first, last + 1)]
        rest = Span(last + 1, span.last) if last < span.last else None
        return SpanPart(list(pieces), BLOCK_BYTES * len(pieces), rest)


@contextmanager
def reading(threads: int, fails_at: int | None = None) -> Iterator[Reader]:
    with ThreadPoolExecutor(threads) as pool:
        yield Reader(pool, fails_at)


def iter_seqnos(ahead: ReadAhead) -> Iterator[int]:
    for pieces in ahead:
        yield from (piece.first for piece in pieces if isinstance(piece, Piece))


@given(
    mc_blocks=st.integers(1, 60),
    size=st.integers(1, 20),
    tasks=st.integers(1, 6),
    limit_bytes=st.integers(0, 300),
)
@settings(max_examples=50, deadline=None)
def test_every_block_comes_once_and_in_order(
    mc_blocks: int, size: int, tasks: int, limit_bytes: int
) -> None:
    with reading(3) as reader:
        spans = cut_span(Span(1, mc_blocks), size)
        ahead = ReadAhead(reader.submit, spans, tasks=tasks, limit_bytes=limit_bytes)
        assert list(iter_seqnos(ahead)) == list(range(1, mc_blocks + 1))
        assert reader.max_busy <= tasks


def test_nothing_is_begun_while_enough_waits() -> None:
    with reading(2) as reader:
        spans = cut_span(Span(1, 100), PART_MC_BLOCKS)
        ahead = iter(ReadAhead(reader.submit, spans, tasks=2, limit_bytes=BLOCK_BYTES))
        next(ahead)
        for _ in range(50):
            threading.Event().wait(0.001)
        # Two tasks may have been at work when the first part came.
        assert len(reader.begun) <= 4
        assert len(list(ahead)) == 33


def test_a_failure_is_raised_behind_what_could_be_read() -> None:
    with reading(1, fails_at=50) as reader:
        spans = cut_span(Span(1, 100), 10)
        ahead = ReadAhead(reader.submit, spans, tasks=1, limit_bytes=0)
        found: list[int] = []
        with pytest.raises(SourceError, match="block 50"):
            found.extend(iter_seqnos(ahead))
        assert found == list(range(1, len(found) + 1))
        assert all(span.first <= 50 for span in reader.begun)


def test_nothing_begins_after_the_reader_has_left() -> None:
    with reading(2) as reader:
        ahead = iter(ReadAhead(reader.submit, cut_span(Span(1, 900), 3), tasks=2, limit_bytes=60))
        next(ahead)
        ahead.close()  # type: ignore[attr-defined]
        begun = len(reader.begun)
        threading.Event().wait(0.05)
        assert len(reader.begun) == begun

"""Worker processes of an ingest: they read and decode spans, and run stages of derivation.

The coordinator orders their results and commits them, so nothing is lost if a worker dies. Each
worker opens the source itself. Spans are read ahead of the commits; the bytes of waiting results
are limited, except that the next span is always read, so the limit never stops the ingest.

Each process has its own channel. They share no queue and no lock: one that is killed at any moment,
even while it sends a result, closes its pipe and does not disturb the others.

The buffers of tables are in files. A pipe copies bytes five times, in pieces of 64 KiB: sending 61
MB of rows takes 0.5 s of CPU time, and 0.04 s through a file that the receiver maps. The file is
unlinked as soon as it is mapped, that of a shared value after its last use; the files of
killed processes are removed together with the temporary files of the lake.
"""

import mmap
import multiprocessing
import os
import pickle
import secrets
import signal
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import pyarrow as pa

from tonlake.ingest.assemble.batch import Hole, Piece, decode_chunk, measure_rows
from tonlake.ingest.assemble.chunk import NOT_YET, VersionRegistry, explain_hole, read_chunks
from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.errors import IngestError, SourceError
from tonlake.ingest.settings import IngestSections, IngestSettings
from tonlake.ingest.span import Span
from tonlake.ingest.spread import Shared, Spread
from tonlake.lake.errors import LakeFull
from tonlake.lake.log.disk import TEMPORARY_PREFIX, make_folder, naming_full_disk
from tonlake.lake.log.state import LOG_FOLDER, LogReader
from tonlake.lake.process import raise_file_limit
from tonlake.lake.system import keep_heap_small

if TYPE_CHECKING:
    from tonlake.ingest.source.origin import Origin

Begin = Callable[..., None]
T = TypeVar("T")
R = TypeVar("R")

_FEW_BYTES = 1 << 10
"""Buffers up to this size are part of the pickled value."""

_ALIGNMENT = 64
"""Alignment of Arrow buffers."""


class Packed(NamedTuple):
    """A pickled value, and the offsets and sizes of its large buffers in a file, if any."""

    data: bytes
    places: list[tuple[int, int]]
    path: Path | None

    def open(self) -> Any:  # noqa: ANN401 - any value
        """Return the value; its buffers stay mapped as long as they are referenced."""
        buffers: list[pa.Buffer] = []
        if self.path is not None:
            with self.path.open("rb") as stream:
                whole = pa.py_buffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
            buffers = [whole.slice(*place) for place in self.places]
        return pickle.loads(self.data, buffers=buffers)  # noqa: S301 - our own bytes


def pack(value: object, folder: Path) -> Packed:
    """Return a pickled value; its large buffers are written to a file in ``folder``."""
    places: list[tuple[int, int]] = []
    large: list[pa.Buffer] = []
    size_bytes = 0

    def is_small(pickled: pickle.PickleBuffer) -> bool:
        nonlocal size_bytes
        buffer = pa.py_buffer(pickled)
        if buffer.size <= _FEW_BYTES:
            return True
        large.append(buffer)
        places.append((size_bytes, buffer.size))
        size_bytes += buffer.size + -buffer.size % _ALIGNMENT
        return False

    data = pickle.dumps(value, protocol=5, buffer_callback=is_small)
    return Packed(data, places, _write(large, folder) if large else None)


def _write(buffers: Sequence[pa.Buffer], folder: Path) -> Path:
    path = folder / f"{os.getpid()}-{secrets.token_hex(8)}"
    with naming_full_disk(path):
        folder.mkdir(exist_ok=True)  # a sweep may have removed it as a dead process's
        try:
            with path.open("xb") as stream:
                for buffer in buffers:
                    stream.write(buffer)
                    stream.seek(-stream.tell() % _ALIGNMENT, os.SEEK_CUR)
                stream.truncate()
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path


class SharedValue(Shared[T]):
    """A value pickled once for all receivers, which open it as long as this object is kept."""

    def __init__(self, value: T, folder: Path) -> None:
        super().__init__(value)
        self._packed = pack(value, folder)
        if self._packed.path is not None:
            weakref.finalize(self, self._packed.path.unlink, missing_ok=True)

    def __reduce__(self) -> tuple[Callable[..., Packed], Packed]:
        return Packed, self._packed


def receive(pipe: Connection) -> Any:  # noqa: ANN401 - any value
    """Return the next packed value of a pipe, and remove its file."""
    packed: Packed = pipe.recv()
    value = packed.open()
    if packed.path is not None:
        packed.path.unlink()
    return value


_CONTEXT = multiprocessing.get_context("spawn")
"""Spawned, not forked: RocksDB and Arrow have threads that do not survive a fork."""

AT_END = ExitStack()
"""Resources of a worker process, closed when it ends."""


class TaskProcess:
    """A worker process; used by one thread at a time."""

    def __init__(self, folder: Path, begin: Begin, *values: object) -> None:
        """Start the process with a call of ``begin``; function and values are pickled."""
        here, there = _CONTEXT.Pipe()
        self._pipe, self._folder = here, folder
        self._process = _CONTEXT.Process(
            target=_serve, args=(there, folder, begin, values), daemon=True
        )
        with there:
            self._process.start()
        self.is_busy = False

    def run(self, work: Callable[..., Any], *values: object) -> Any:  # noqa: ANN401 - any result
        """Return ``work(*values)``; function, values and result are pickled."""
        self.is_busy = True
        try:
            self._pipe.send(pack((work, values), self._folder))
            result, error = receive(self._pipe)
        except (EOFError, OSError) as cause:
            self._process.join()
            code = self._process.exitcode or 0
            raise IngestError(
                f"a worker of the ingest died: process {self._process.pid} ended with "
                f"{f'signal {-code}' if code < 0 else f'code {code}'}; commits are kept, "
                "and the same command resumes after them"
            ) from cause
        self.is_busy = False
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        """Let the process end if it is idle, else terminate it; do not wait."""
        if self.is_busy:
            self._process.terminate()
        else:
            self._pipe.close()

    def join(self) -> None:
        """Wait until the process has ended."""
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection, folder: Path, begin: Begin, values: tuple[object, ...]) -> None:
    begin(*values)
    while True:
        try:
            work, given = receive(pipe)
        except EOFError:
            AT_END.close()
            os._exit(0)  # unloading all modules would cost 0.2 s of CPU time
        answer: tuple[Any, Exception | None]
        try:
            answer = work(*given), None
        except Exception as error:  # noqa: BLE001 - any error is passed to the caller
            answer = None, _portable(error)
        del given
        try:
            pipe.send(pack(answer, folder))
        except LakeFull as error:
            pipe.send(pack((None, error), folder))
        del answer


def _portable(error: Exception) -> Exception:
    """Return an error, or its text in a RuntimeError if it cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - errors may raise anything here
        return RuntimeError(text)
    error.add_note(text)
    return error


def read_pieces(
    source: BlockSource, span: Span, settings: IngestSettings, versions: VersionRegistry
) -> Iterator[list[Piece | Hole]]:
    """Yield the pieces and holes of a span in order, chunk by chunk."""
    for chunk in read_chunks(source, span, settings, versions):
        if isinstance(chunk, Hole):
            yield [chunk]
            continue
        yield [
            explain_hole(source, outcome) if isinstance(outcome, Hole) else outcome
            for outcome in decode_chunk(chunk)
        ]


def cut_span(span: Span, mc_blocks: int) -> Iterator[Span]:
    """Split a span into spans of at most ``mc_blocks`` masterchain blocks."""
    for first in range(span.first, span.last + 1, mc_blocks):
        yield Span(first, min(first + mc_blocks - 1, span.last))


class SpanPart(msgspec.Struct, frozen=True):
    """The first pieces and holes of a span, the size of their rows, and the rest of the span."""

    outcomes: list[Piece | Hole]
    size_bytes: int
    rest: Span | None


class _SpanReading:
    """A span being read."""

    def __init__(self, span: Span) -> None:
        self.rest: Span | None = span
        self.parts: deque[SpanPart] = deque()
        self.is_busy = False


class ReadAhead:
    """Parts of spans, read by workers, at most ``tasks`` at a time, and yielded in order."""

    def __init__(
        self,
        submit: Callable[[Span], Future[SpanPart]],
        spans: Iterable[Span],
        *,
        tasks: int,
        limit_bytes: int,
    ) -> None:
        """Start nothing yet; no task starts while ``limit_bytes`` of rows wait for a commit."""
        self._submit = submit
        self._spans = iter(spans)
        self._tasks = tasks
        self._limit_bytes = limit_bytes
        self._readings: deque[_SpanReading] = deque()
        self._changed = threading.Condition()
        self._waiting_bytes = 0
        self._busy = 0
        self._failure: BaseException | None = None
        self._is_over = False

    def __iter__(self) -> Iterator[list[Piece | Hole]]:
        """Yield the pieces and holes of all spans; raise errors of workers."""
        try:
            while (part := self._take()) is not None:
                yield part.outcomes
        finally:
            with self._changed:
                self._is_over = True

    def _take(self) -> SpanPart | None:
        with self._changed:
            while True:
                while self._readings and not (self._readings[0].rest or self._readings[0].parts):
                    self._readings.popleft()
                self._begin_tasks()
                if self._failure is not None:
                    raise self._failure
                if not self._readings:
                    return None
                if self._readings[0].parts:
                    part = self._readings[0].parts.popleft()
                    self._waiting_bytes -= part.size_bytes
                    return part
                self._changed.wait()

    def _begin_tasks(self) -> None:
        for reading in self._readings:
            is_next = reading is self._readings[0]
            if reading.rest and not reading.is_busy and self._may_begin(is_next=is_next):
                self._begin(reading, reading.rest)
        while self._may_begin(is_next=not self._readings):
            span = next(self._spans, None)
            if span is None:
                break
            self._readings.append(_SpanReading(span))
            self._begin(self._readings[-1], span)

    def _may_begin(self, *, is_next: bool) -> bool:
        if self._is_over or self._failure is not None or self._busy >= self._tasks:
            return False
        return is_next or self._waiting_bytes < self._limit_bytes

    def _begin(self, reading: _SpanReading, span: Span) -> None:
        reading.is_busy = True
        self._busy += 1
        self._submit(span).add_done_callback(lambda done: self._end(reading, done))

    def _end(self, reading: _SpanReading, done: Future[SpanPart]) -> None:
        with self._changed:
            self._busy -= 1
            reading.is_busy = False
            try:
                part = done.result()
            except BaseException as error:  # noqa: BLE001 - raised to the consumer
                self._failure = error
            else:
                reading.parts.append(part)
                reading.rest = part.rest
                self._waiting_bytes += part.size_bytes
                if not self._is_over:
                    self._begin_tasks()
            self._changed.notify()


PART_BYTES = 32 << 20
"""A worker returns the first part of a span once its rows take this much memory."""

MANY_MC_BLOCKS = 1_500
"""Masterchain blocks from which on workers pay off: with two workers on two cores 1,686 blocks of
13 transactions took 21 % less time, 182 blocks of 331 transactions 20 % less."""

_TASKS_PER_WORKER = 2
"""One being processed, and one waiting."""


class Workers(Spread):
    """Worker processes; close them after use."""

    def __init__(self, count: int, lake_dir: Path, open_source: Callable[[], BlockSource]) -> None:
        """Start up to ``count`` processes on demand; ``open_source`` is pickled for them."""
        self.count = count
        raise_file_limit()  # rows waiting for other stages are open files
        make_folder(lake_dir / LOG_FOLDER)
        self._folder = TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=lake_dir / LOG_FOLDER)
        self._path = Path(self._folder.name)
        self._start = partial(TaskProcess, self._path, _begin, lake_dir, open_source)
        # A thread per process sends it work and waits for its result.
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="ingest-worker")
        self._processes: list[TaskProcess] = []
        self._idle: SimpleQueue[TaskProcess] = SimpleQueue()

    def close(self) -> None:
        """End the processes; unfinished work is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.stop()
        self._threads.shutdown()
        for process in self._processes:
            process.stop()  # again: one may have been started meanwhile
            process.join()
        self._folder.cleanup()

    def read(self, span: Span, settings: IngestSettings) -> Iterator[list[Piece | Hole]]:
        """Yield the pieces and holes of a span in order, read ahead of the commits."""
        yield from ReadAhead(
            lambda part: self.submit(partial(_read_part, settings=settings), part),
            cut_span(span, settings.mc_blocks_per_chunk),
            tasks=self.count * _TASKS_PER_WORKER,
            limit_bytes=settings.commit_bytes,
        )

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``work(item)`` for each item, in order; function and items are pickled."""
        futures = deque(self.submit(work, item) for item in items)
        while futures:
            yield futures.popleft().result()

    def share(self, value: T) -> Shared[T]:
        """Return a handle by which processes open ``value``; see ``Spread``."""
        return SharedValue(value, self._path)

    def submit(self, work: Callable[[T], R], item: T) -> Future[R]:
        """Start ``work(item)``; its result raises as ``map`` does."""
        return self._threads.submit(self._run, work, item)

    def _run(self, work: Callable[[T], R], item: T) -> R:
        try:
            process = self._idle.get_nowait()
        except Empty:
            process = self._start()
            self._processes.append(process)
        try:
            result: R = process.run(work, item)
            return result
        finally:
            self._idle.put(process)


def count_workers(span: Span) -> int:
    """Return how many workers a span is worth: one per core if it has many blocks."""
    return (os.cpu_count() or 1) if len(span) >= MANY_MC_BLOCKS else 1


@contextmanager
def start_workers(
    origin: "Origin", lake_dir: Path, settings: IngestSections, count: int
) -> Iterator[Workers | None]:
    """Start workers, and stop them after the block; None if one process suffices."""
    if count <= 1 or origin.liteserver is not None:
        yield None
        return
    with closing(Workers(count, lake_dir, partial(origin.open, settings))) as workers:
        yield workers


_open: Callable[[], tuple[BlockSource, VersionRegistry]] | None = None
"""Returns what a worker process keeps open."""


def _begin(lake_dir: Path, open_source: Callable[[], BlockSource]) -> None:
    """Make this process a worker, which ends with its parent."""
    global _open  # noqa: PLW0603 - functions that a worker runs need it
    keep_heap_small()

    @cache
    def open_once() -> tuple[BlockSource, VersionRegistry]:
        source = AT_END.enter_context(closing(open_source()))
        return source, VersionRegistry(source, LogReader(lake_dir))

    _open = open_once
    # Ctrl-C is sent to all processes of a terminal; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _read_part(span: Span, settings: IngestSettings) -> SpanPart:
    """Read and decode the beginning of a span, up to ``PART_BYTES`` of rows."""
    if _open is None:
        raise RuntimeError("this process is not a worker")
    outcomes: list[Piece | Hole] = []
    size_bytes, last = 0, span.first - 1
    try:
        source, versions = _open()
        for chunk in read_pieces(source, span, settings, versions):
            outcomes += chunk
            end = chunk[-1]
            if isinstance(end, Hole):
                if end.kind == NOT_YET:
                    return SpanPart(outcomes, size_bytes, None)
                last = end.mc_seqno
            else:
                last = end.last
            tables = (piece.tables for piece in chunk if isinstance(piece, Piece))
            size_bytes += sum(
                measure_rows(name, rows) for each in tables for name, rows in each.items()
            )
            if size_bytes >= PART_BYTES:
                break
    except IngestError as error:
        raise SourceError(str(error)) from error  # other errors may not be picklable
    return SpanPart(outcomes, size_bytes, Span(last + 1, span.last) if last < span.last else None)

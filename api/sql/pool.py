"""Runs each statement in its own process, which is killed after the timeout."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from tonlake.api.errors import RequestInvalid, ServiceBusy, SqlUnavailable
from tonlake.api.settings import SqlSettings
from tonlake.api.sql.sandbox import Bounds
from tonlake.api.sql.worker import READY, AnswerHead, Job
from tonlake.lake.duck.connection import list_tables
from tonlake.lake.duck.labels import render_labels
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.settings import LakeSettings

_HEAD_BYTES = 1 << 20

QUEUE = 8
"""Statements that may wait for a process."""

START_S = 60.0
"""Timeout for a process to open the lake, sufficient on a busy machine."""

CPU_SPARE_S = 2
_COMMAND = (sys.executable, "-P", "-m", "tonlake.api.sql.worker")
"""``-P`` keeps the working directory out of the import path, as it may contain anything."""

_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    # The one-file binary finds its unpacked files by these.
    "_PYI_APPLICATION_HOME_DIR",
    "_PYI_ARCHIVE_FILE",
    "_PYI_PARENT_PROCESS_LEVEL",
)
"""Environment variables that a process inherits; none holds keys or passwords."""

DIED = (
    "the process of the statement died, most likely because it needed more than the allowed "
    "{memory} MiB of memory"
)


class Answer(msgspec.Struct, frozen=True):
    """An answer in the requested format; ``complete`` is False if rows were cut."""

    body: bytes
    rows: int
    complete: bool
    duration_ms: float
    warnings: tuple[str, ...] = ()


class SqlPool:
    """A thread-safe pool that keeps one idle process, which saves its start-up time."""

    def __init__(self, settings: SqlSettings, lake: LakeSettings, *, max_bytes: int) -> None:
        """Create the pool; ``lake`` sets threads and labels of processes, started when needed."""
        render_labels(lake)  # raises SettingsError now rather than at the first statement
        labels = str(Path(lake.labels).absolute()) if lake.labels else ""
        self._settings = settings
        self._lake = msgspec.structs.replace(lake, labels=labels)  # workers change directory
        self._max_bytes = max_bytes
        self._places = threading.Semaphore(settings.workers)
        self._lock = threading.Lock()
        self._waiting = 0
        self._spare: subprocess.Popen[bytes] | None = None
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(
        self,
        snapshot: Snapshot,
        query: str,
        form: str,
        max_rows: int,
        signatures: tuple[str, ...] = (),
    ) -> Answer:
        """Run a statement on a snapshot and return up to ``max_rows`` rows.

        ``signatures`` are layouts of message bodies that the statement can read as tables. Raises
        RequestInvalid, ServiceBusy, SqlUnavailable; LakeCorrupt: a file that it may have read.
        """
        self._take_place()
        try:
            answer = self._run(self._write_job(snapshot, query, form, max_rows, signatures))
        except RequestInvalid:
            _check_files(snapshot, list_tables(query))
            raise
        except SqlUnavailable:
            _check_files(snapshot, snapshot.sound_files())  # a worker opens all tables first
            raise
        finally:
            self._places.release()
            with self._lock:
                if not self._closed and self._spare is None:
                    self._spare = _start()
        _check_files(snapshot, list_tables(query))
        return answer

    def close(self) -> None:
        """Kill all processes; callers that wait for one get an error."""
        with self._lock:
            self._closed = True
            left = [*self._running, *([self._spare] if self._spare else [])]
            self._spare = None
        for process in left:
            process.kill()
        for process in left:
            _reap(process)

    def _write_job(
        self, snapshot: Snapshot, query: str, form: str, max_rows: int, signatures: tuple[str, ...]
    ) -> Job:
        settings = self._settings
        damaged = ((each.file, each.reason, each.advice) for each in snapshot.damaged.values())
        seconds = -(-settings.timeout_ms // 1000)
        return Job(
            lake_dir=str(snapshot.lake_dir.absolute()),
            snapshot=snapshot.number,
            damaged=tuple(damaged),
            query=query,
            signatures=signatures,
            form=form,
            max_rows=max_rows,
            max_bytes=self._max_bytes,
            memory_mib=settings.memory_mib,
            lake=self._lake,
            bounds=Bounds(
                memory_bytes=settings.memory_mib << 20,
                # CPU time counts from the start of the process, which takes some of it.
                cpu_s=(seconds + CPU_SPARE_S) * self._lake.duckdb_threads + int(START_S),
                user=settings.user,
            ),
        )

    def _take_place(self) -> None:
        if self._places.acquire(blocking=False):
            return
        with self._lock:
            if self._waiting >= QUEUE:
                raise ServiceBusy("too many statements are waiting: retry later")
            self._waiting += 1
        try:
            if not self._places.acquire(timeout=self._settings.timeout_ms / 1000):
                raise ServiceBusy("no process became free for the statement in time: retry later")
        finally:
            with self._lock:
                self._waiting -= 1

    def _run(self, job: Job) -> Answer:
        with self._lock:
            if self._closed:
                raise ServiceBusy("the service is stopping")
            process, self._spare = self._spare, None
            if process is None or process.poll() is not None:
                process = _start()
            self._running.add(process)
        try:
            return self._exchange(process, job)
        finally:
            process.kill()
            _reap(process)
            with self._lock:
                self._running.discard(process)

    def _exchange(self, process: subprocess.Popen[bytes], job: Job) -> Answer:
        try:
            if process.stdin is not None:
                process.stdin.write(msgspec.json.encode(job))
                process.stdin.close()
        except BrokenPipeError as error:
            raise SqlUnavailable("the process of the statement did not start") from error
        first = _read(process, _HEAD_BYTES, START_S)
        began_s = time.monotonic()
        if first != READY:
            head = _read_head(first)
            text = "the process of the statement did not start" if head is None else head.error
            raise SqlUnavailable(str(text))
        limit_ms = self._settings.timeout_ms
        try:
            head = _read_head(_read(process, _HEAD_BYTES, limit_ms / 1000))
            if head is None:
                raise RequestInvalid(DIED.format(memory=job.memory_mib))
            body = _read(process, job.max_bytes + 1, START_S, is_line=False)
        except TimeoutError as error:
            raise RequestInvalid(
                f"the statement did not end within {limit_ms} ms: simplify it, "
                "or raise the setting [sql] timeout_ms"
            ) from error
        if head.error is not None:
            raise RequestInvalid(head.error)
        if len(body) > job.max_bytes:
            raise RequestInvalid(f"the answer has more than {job.max_bytes:,} bytes: select less")
        duration_ms = (time.monotonic() - began_s) * 1000
        return Answer(body, head.rows, head.complete, duration_ms, head.warnings)


def _check_files(snapshot: Snapshot, tables: Iterable[str]) -> None:
    """Raise the error of the first damaged table, if any."""
    for table in tables:
        if table in snapshot.damaged:
            raise snapshot.damaged[table]
        snapshot.watch.check(table, always=True)


def _start() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - this interpreter with constant arguments
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _read(
    process: subprocess.Popen[bytes], most: int, limit_s: float, *, is_line: bool = True
) -> bytes:
    """Return the next line of a process, or its rest; kill it after ``limit_s`` (TimeoutError)."""
    assert process.stdout is not None  # noqa: S101 - started with a pipe
    end_s = time.monotonic() + limit_s
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    try:
        data = process.stdout.readline(most) if is_line else process.stdout.read(most)
    finally:
        timer.cancel()
    if time.monotonic() >= end_s:
        raise TimeoutError
    return data


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Wait for a killed process and close its pipes."""
    process.wait()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(BrokenPipeError):  # it never read the job
            pipe.close()


def _read_head(line: bytes) -> AnswerHead | None:
    """Decode the head of an answer; None if it is invalid."""
    try:
        return msgspec.json.decode(line, type=AnswerHead)
    except msgspec.DecodeError:
        return None

"""Runs statements, each in a process of its own that is killed when its time is over."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tonlake.api.errors import RequestInvalid, SqlBusy, SqlUnavailable
from tonlake.api.sql.output import Output
from tonlake.api.sql.sandbox import Bounds
from tonlake.api.sql.worker import READY, Damaged, Head, Job
from tonlake.lake.duck.database import list_tables
from tonlake.lake.duck.labels import render_labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.settings import SqlSettings
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.settings import LakeSettings

QUEUE = 8
"""Statements that may wait for a process."""

START_S = 60.0
"""How long a process may take to open the lake, on a busy computer too."""

CPU_SPARE_S = 2
_COMMAND = (sys.executable, "-P", "-m", "tonlake.api.sql.worker")
"""The import path without the working folder, which may hold anything."""

_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    # By these the one-file binary finds what it has unpacked already.
    "_PYI_APPLICATION_HOME_DIR",
    "_PYI_ARCHIVE_FILE",
    "_PYI_PARENT_PROCESS_LEVEL",
)
"""What of the environment a process gets: keys and passwords are none of it."""

DIED = (
    "the process of the statement died: it most likely needed more memory than the "
    "{memory} MiB that are allowed"
)


class Answer(msgspec.Struct, frozen=True):
    """An answer in the form that was asked for, its rows, and whether these are all."""

    body: bytes
    rows: int
    complete: bool
    duration_ms: float
    warnings: tuple[str, ...] = ()


class SqlPool:
    """For all threads; keeps one process ready, which saves the next statement its start."""

    def __init__(self, settings: SqlSettings, lake: LakeSettings, *, most_bytes: int) -> None:
        """Make the pool; nothing is started before the first statement.

        ``most_bytes`` bounds an answer; ``lake`` has the threads and the labels of each process.
        """
        render_labels(lake)  # raises LabelsInvalid now, and not at the first statement
        labels = str(Path(lake.labels).absolute()) if lake.labels else ""
        self._settings = settings
        self._lake = msgspec.structs.replace(lake, labels=labels)  # they work in another folder
        self._most_bytes = most_bytes
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
        most_rows: int,
        signatures: tuple[str, ...] = (),
    ) -> Answer:
        """Answer a statement about a snapshot, with its first rows.

        ``signatures`` are layouts of bodies whose messages are tables of the statement.

        Raises:
            RequestInvalid: the statement cannot be answered, or not within the bounds.
            SqlBusy: too many statements run and wait.
            SqlUnavailable: this machine cannot run them safely.
            LakeCorrupt: a file that the statement may have read is damaged.
        """
        self._take_place()
        try:
            answer = self._run(self._write_job(snapshot, query, form, most_rows, signatures))
        except RequestInvalid:
            _check_files(snapshot, list_tables(query))
            raise
        except SqlUnavailable:
            _check_files(snapshot, snapshot.sound_files())  # a process begins with all tables
            raise
        finally:
            self._places.release()
            self._keep_spare()
        _check_files(snapshot, list_tables(query))
        return answer

    def close(self) -> None:
        """End every process; a caller that waits for one gets an error."""
        with self._lock:
            self._closed = True
            left = [*self._running, *([self._spare] if self._spare else [])]
            self._spare = None
        for process in left:
            process.kill()
        for process in left:
            _bury(process)

    def _write_job(
        self,
        snapshot: Snapshot,
        query: str,
        form: str,
        most_rows: int,
        signatures: tuple[str, ...],
    ) -> Job:
        settings = self._settings
        damaged = (
            Damaged(each.file, each.reason, each.advice) for each in snapshot.damaged.values()
        )
        seconds = -(-settings.timeout_ms // 1000)
        return Job(
            lake_dir=str(snapshot.lake_dir.absolute()),
            snapshot=snapshot.number,
            damaged=tuple(damaged),
            query=query,
            signatures=signatures,
            form=form,
            most_rows=most_rows,
            most_bytes=self._most_bytes,
            memory_mib=settings.memory_mib,
            lake=self._lake,
            bounds=Bounds(
                memory_bytes=settings.memory_mib << 20,
                # Counted from the start of the process, whose own start takes some as well.
                cpu_s=(seconds + CPU_SPARE_S) * self._lake.duckdb_threads + int(START_S),
                user=settings.user,
            ),
        )

    def _take_place(self) -> None:
        if self._places.acquire(blocking=False):
            return
        with self._lock:
            if self._waiting >= QUEUE:
                raise SqlBusy("too many statements wait to be run: ask again later")
            self._waiting += 1
        try:
            if not self._places.acquire(timeout=self._settings.timeout_ms / 1000):
                raise SqlBusy("no process for the statement became free in time: ask again later")
        finally:
            with self._lock:
                self._waiting -= 1

    def _run(self, job: Job) -> Answer:
        process = self._take_process()
        try:
            return self._converse(process, job)
        finally:
            process.kill()
            _bury(process)
            with self._lock:
                self._running.discard(process)

    def _converse(self, process: subprocess.Popen[bytes], job: Job) -> Answer:
        output = Output(process)
        try:
            if process.stdin is not None:
                process.stdin.write(msgspec.json.encode(job))
                process.stdin.close()
        except BrokenPipeError as error:
            raise SqlUnavailable("the process of the statement did not start") from error
        first = output.read_line(time.monotonic() + START_S)
        began_s = time.monotonic()
        if first != READY:
            head = _read_head(first)
            text = "the process of the statement did not start" if head is None else head.error
            raise SqlUnavailable(str(text))
        limit_ms = self._settings.timeout_ms
        try:
            head = _read_head(output.read_line(began_s + limit_ms / 1000))
            if head is None:
                raise RequestInvalid(DIED.format(memory=job.memory_mib))
            body = output.read_rest(job.most_bytes, time.monotonic() + START_S)
        except TimeoutError as error:
            raise RequestInvalid(
                f"the statement did not end within {limit_ms} ms: ask for less, "
                "or raise the setting [sql] timeout_ms"
            ) from error
        if head.error is not None:
            raise RequestInvalid(head.error)
        duration_ms = (time.monotonic() - began_s) * 1000
        return Answer(body, head.rows, head.complete, duration_ms, head.warnings)

    def _take_process(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise SqlBusy("the service is stopping")
            process, self._spare = self._spare, None
            if process is None or process.poll() is not None:
                process = _start()
            self._running.add(process)
            return process

    def _keep_spare(self) -> None:
        with self._lock:
            if not self._closed and self._spare is None:
                self._spare = _start()


def _check_files(snapshot: Snapshot, tables: Iterable[str]) -> None:
    """Raise the damage of a table, if there is any."""
    for table in tables:
        if table in snapshot.damaged:
            raise snapshot.damaged[table]
        snapshot.watch.check(table, always=True)


def _start() -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - this interpreter, and nothing of a stranger's
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _bury(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was killed, and close what led to it."""
    process.wait()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(BrokenPipeError):  # A job that it never read.
            pipe.close()


def _read_head(line: bytes) -> Head | None:
    """Return the head of an answer; None where it cannot be read."""
    try:
        return msgspec.json.decode(line, type=Head)
    except msgspec.DecodeError:
        return None

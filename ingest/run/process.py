"""Runs functions in other processes, and transfers values between them.

Each process has its own channel. They share no queue and no lock: one that is killed at any moment,
even while it sends a result, closes its pipe and does not disturb the others.

The buffers of tables are in files. A pipe copies bytes five times, in pieces of 64 KiB: sending 61
MB of rows takes 0.5 s of CPU time, and 0.04 s through a file that the receiver maps. The file is
unlinked as soon as it is mapped, that of a shared value after its last use; the files of
killed processes are removed together with the temporary files of the lake.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import secrets
import traceback
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from tonlake.ingest.errors import IngestError
from tonlake.lake.errors import LakeFull
from tonlake.lake.log.disk import naming_full_disk

Begin = Callable[..., None]


T = TypeVar("T")

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


class SharedValue(Generic[T]):
    """A value pickled once for all receivers, which open it as long as this object is kept."""

    def __init__(self, value: T, folder: Path) -> None:
        self._value, self._packed = value, pack(value, folder)
        if self._packed.path is not None:
            weakref.finalize(self, self._packed.path.unlink, missing_ok=True)

    def __reduce__(self) -> tuple[Callable[..., Packed], Packed]:
        return Packed, self._packed

    def open(self) -> T:
        """Return the value."""
        return self._value


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

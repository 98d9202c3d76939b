"""Runs functions in other processes, and transfers values between them.

Each process has its own channel. They share no queue and no lock: one that is killed at any moment,
even while it sends a result, closes its pipe and does not disturb the others.

The buffers of tables are in files. A pipe copies bytes five times, in pieces of 64 KiB: sending 61
MB of rows takes 0.5 s of CPU time, and 0.04 s through a file that the receiver maps. The file is
unlinked as soon as it is mapped; the files of killed processes are removed together with the
temporary files of the lake. The coordinator keeps its files open: rows from one worker are passed
on to other workers without being written again.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pickle
import secrets
import threading
import traceback
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from tonlake.ingest.errors import WorkerLost
from tonlake.lake.errors import LakeFull
from tonlake.lake.log.disk import naming_full_disk
from tonlake.lake.system import name_open_file

Begin = Callable[..., None]


T = TypeVar("T")

_FEW_BYTES = 1 << 10
"""Buffers up to this size are part of the pickled value."""

_ALIGNMENT = 64
"""Alignment of Arrow buffers."""

_FRESH = ""
"""Placeholder path of the file written for the value."""


class Packed(NamedTuple):
    """A pickled value, and where its large buffers are: number of a file, offset and size."""

    data: bytes
    places: list[tuple[int, int, int]]
    paths: list[str]
    fresh: str | None
    """Name of the file written only for this value (``_FRESH`` in ``paths``); None if none."""


class _Mapping(NamedTuple):
    """Address range of a mapped file, and a path to it that is valid as long as it is mapped."""

    start: int
    end: int
    path: str
    mapped: weakref.ref[mmap.mmap]


class BufferFiles:
    """Files of buffers in one folder, as used by one process."""

    def __init__(self, folder: Path, *, keeps: bool = False) -> None:
        """Use ``folder``; ``keeps`` means that buffers in mapped files are sent by reference."""
        self.folder, self._keeps = folder, keeps
        self._mappings: tuple[_Mapping, ...] = ()  # by address; replaced as a whole
        self._lock = threading.RLock()  # a mapping may end at any time, even while this is held

    def pack(self, value: object) -> Packed:
        """Return a pickled value to be sent; keep ``value`` until it is unpacked."""
        mappings = self._list_mapped()
        starts = [mapping.start for mapping in mappings]
        numbers: dict[str, int] = {}
        places: list[tuple[int, int, int]] = []
        fresh: list[pa.Buffer] = []
        size_bytes = 0

        def is_small(pickled: pickle.PickleBuffer) -> bool:
            nonlocal size_bytes
            buffer = pa.py_buffer(pickled)
            near = bisect_right(starts, buffer.address) - 1
            if near >= 0 and buffer.address < mappings[near].end:
                path, at = mappings[near].path, buffer.address - starts[near]
            elif buffer.size <= _FEW_BYTES:
                return True
            else:
                path, at = _FRESH, size_bytes
                fresh.append(buffer)
                size_bytes += buffer.size + -buffer.size % _ALIGNMENT
            places.append((numbers.setdefault(path, len(numbers)), at, buffer.size))
            return False

        data = pickle.dumps(value, protocol=5, buffer_callback=is_small)
        return Packed(data, places, [*numbers], self._write(fresh) if fresh else None)

    def unpack(self, packed: Packed) -> Any:  # noqa: ANN401 - any value
        """Return the value; its buffers stay mapped as long as they are referenced."""
        known = {mapping.path: mapping.mapped() for mapping in self._mappings}
        files = [
            self._map_fresh(str(packed.fresh))
            if path == _FRESH
            else pa.py_buffer(known.get(path) or _map(path))
            for path in packed.paths
        ]
        return _load(packed, files)

    def keep(self, packed: Packed) -> tuple[Packed, pa.Buffer | None]:
        """Return a value that any process can unpack as long as the returned buffer is kept."""
        if packed.fresh is None:
            return packed, None
        whole = self._map_fresh(packed.fresh)
        (kept,) = (each.path for each in self._list_mapped() if each.start == whole.address)
        return packed._replace(paths=[path or kept for path in packed.paths], fresh=None), whole

    def _list_mapped(self) -> list[_Mapping]:
        """Return the files that are still mapped; the addresses of others may be reused."""
        return [mapping for mapping in self._mappings if mapping.mapped() is not None]

    def _write(self, buffers: Sequence[pa.Buffer]) -> str:
        name = f"{os.getpid()}-{secrets.token_hex(8)}"
        path = self.folder / name
        with naming_full_disk(path):
            self.folder.mkdir(exist_ok=True)  # a sweep may have removed it as a dead process's
            try:
                with path.open("xb", buffering=0) as stream:
                    for buffer in buffers:
                        rest = memoryview(buffer)
                        while rest:
                            rest = rest[stream.write(rest) :]
                        stream.seek(-stream.tell() % _ALIGNMENT, os.SEEK_CUR)
                    stream.truncate()
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return name

    def _map_fresh(self, name: str) -> pa.Buffer:
        """Map a file that was written for this process, and unlink it."""
        path = self.folder / name
        mapped = _map(path)
        whole = pa.py_buffer(mapped)
        shown = None
        if self._keeps:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            start, shown = whole.address, name_open_file(descriptor) or str(path)
            mapping = _Mapping(start, start + whole.size, shown, weakref.ref(mapped))
            weakref.finalize(mapped, self._forget, mapping, descriptor)
            with self._lock:
                self._mappings = tuple(sorted((*self._mappings, mapping)))
        if shown != str(path):  # else it has no other name, and loses this one at the end
            path.unlink()  # from now on no sweep can remove the file
        return whole

    def _forget(self, mapping: _Mapping, descriptor: int) -> None:
        with self._lock:
            self._mappings = tuple(each for each in self._mappings if each is not mapping)
        os.close(descriptor)
        if Path(mapping.path).parent == self.folder:
            Path(mapping.path).unlink(missing_ok=True)


def _map(path: Path | str) -> mmap.mmap:
    with open(path, "rb") as stream:  # noqa: PTH123 - mostly a path of proc(5)
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _load(packed: Packed, files: list[pa.Buffer]) -> Any:  # noqa: ANN401 - any value
    buffers = [files[number].slice(at, size_bytes) for number, at, size_bytes in packed.places]
    return pickle.loads(packed.data, buffers=buffers)  # noqa: S301 - our own bytes


class SharedValue(Generic[T]):
    """A value pickled once for all receivers; its tables are in files."""

    def __init__(self, files: BufferFiles, value: T) -> None:
        """Pack ``value``; ``files`` must keep its mapped files."""
        self._files, self._value = files, value
        self._packed, self._whole = files.keep(files.pack(value))

    def __reduce__(self) -> tuple[Callable[..., SentValue], Packed]:
        """Pickle as a ``SentValue``, which can be opened as long as this object is kept."""
        return SentValue, self._packed

    def open(self) -> T:
        """Return an equal value, with its tables in files."""
        value: T = self._files.unpack(self._packed)
        return value


class SentValue(Packed):
    """A value in files of another process."""

    __slots__ = ()

    def open(self) -> Any:  # noqa: ANN401 - any value
        """Map the files and return the value."""
        return _load(self, [pa.py_buffer(_map(path)) for path in self.paths])


class Channel:
    """One end of a pipe between two processes that share a folder."""

    def __init__(self, pipe: Connection, files: BufferFiles) -> None:
        """Use one end of a pipe, and the files of this process."""
        self.close = pipe.close
        self._pipe, self._files = pipe, files

    def send(self, value: object) -> None:
        """Pickle and send a value; keep it until the other end has received it."""
        self._pipe.send(tuple(self._files.pack(value)))

    def receive(self) -> Any:  # noqa: ANN401 - any value
        """Return the next value."""
        return self._files.unpack(Packed(*self._pipe.recv()))


_CONTEXT = multiprocessing.get_context("spawn")
"""Spawned, not forked: RocksDB and Arrow have threads that do not survive a fork."""

AT_END = ExitStack()
"""Resources of a worker process, closed when it ends."""


class TaskProcess:
    """A worker process; used by one thread at a time."""

    def __init__(self, files: BufferFiles, begin: Begin, *values: object) -> None:
        """Start the process with a call of ``begin``; function and values are pickled."""
        here, there = _CONTEXT.Pipe()
        self._channel = Channel(here, files)
        self._process = _CONTEXT.Process(
            target=_serve, args=(there, files.folder, begin, values), daemon=True
        )
        with there:
            self._process.start()
        self.is_busy = False

    def run(self, work: Callable[..., Any], *values: object) -> Any:  # noqa: ANN401 - any result
        """Return ``work(*values)``; function, values and result are pickled."""
        self.is_busy = True
        try:
            self._channel.send((work, values))
            result, error = self._channel.receive()
        except (EOFError, OSError) as cause:
            self._process.join()
            raise WorkerLost(
                f"a worker of the ingest died: process {self._process.pid} ended with "
                f"{_describe_exit(self._process.exitcode)}; commits are kept, "
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
            self._channel.close()

    def join(self) -> None:
        """Wait until the process has ended."""
        self._process.join()
        self._channel.close()


def _serve(pipe: Connection, folder: Path, begin: Begin, values: tuple[object, ...]) -> None:
    begin(*values)
    channel = Channel(pipe, BufferFiles(folder))
    while True:
        try:
            work, given = channel.receive()
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
            channel.send(answer)
        except LakeFull as error:
            channel.send((None, error))
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


def _describe_exit(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"

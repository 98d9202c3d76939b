"""A process that runs functions, one at a time, over its own channel.

Such processes share no queue and no lock: one that is killed at any moment, even while it sends a
result, closes its pipe and does not disturb the others.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tonlake.ingest.errors import WorkerLost
from tonlake.ingest.run.channel import BufferFiles, Channel
from tonlake.lake.errors import LakeFull

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    Begin = Callable[..., None]

_CONTEXT = multiprocessing.get_context("spawn")
"""Spawned, not forked: RocksDB and Arrow have threads that do not survive a fork."""

AT_END = ExitStack()
"""Resources of a worker process, closed when it ends."""


class TaskProcess:
    """A worker process; used by one thread at a time."""

    def __init__(self, files: BufferFiles, begin: Begin, *values: object) -> None:
        """Start the process with a call of ``begin``; function and values are pickled.

        Tables are sent in both directions through ``files``.
        """
        here, there = _CONTEXT.Pipe()
        self._channel = Channel(here, files)
        self._process = _CONTEXT.Process(
            target=_serve, args=(there, files.folder, begin, values), daemon=True
        )
        with there:
            self._process.start()
        self.is_busy = False

    def run(self, work: Callable[..., Any], *values: object) -> Any:  # noqa: ANN401 - any result
        """Return ``work(*values)``; function, values and result are pickled.

        Raises:
            WorkerLost: the process died.
            LakeFull: the disk is full.
            Exception: the error that the function raised.
        """
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

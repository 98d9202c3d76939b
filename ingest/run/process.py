"""A process that runs functions, one at a time, over a channel of its own.

Nothing is shared between such processes, no queue and no lock: one that is killed at any moment,
in the middle of an answer too, closes its pipe, and disturbs no other.
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
"""Spawned, not forked: RocksDB and Arrow keep threads that do not survive a fork."""

AT_END = ExitStack()
"""What is open in a task process for as long as it lives; closed before it ends."""


class TaskProcess:
    """One process; used by one thread at a time."""

    def __init__(self, files: BufferFiles, begin: Begin, *values: object) -> None:
        """Start it with a call of ``begin``; function and values are pickled.

        Tables go there and come back in ``files``.
        """
        here, there = _CONTEXT.Pipe()
        self._channel = Channel(here, files)
        self._process = _CONTEXT.Process(
            target=_serve, args=(there, files.folder, begin, values), daemon=True
        )
        with there:
            self._process.start()
        self.is_busy = False

    def run(self, work: Callable[..., Any], *values: object) -> Any:  # noqa: ANN401 - any work's
        """Return what a function makes of values; all of them are pickled.

        Raises:
            WorkerLost: the process died.
            LakeFull: no room for the tables among the values or in the result.
            Exception: what the function raised.
        """
        self.is_busy = True
        try:
            self._channel.send((work, values))
            result, error = self._channel.receive()
        except (EOFError, OSError) as cause:
            self._process.join()
            raise WorkerLost(
                f"a worker of the ingest died: process {self._process.pid} ended with "
                f"{_describe_exit(self._process.exitcode)}; what is committed stays, "
                "and the same command goes on from there"
            ) from cause
        self.is_busy = False
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        """Let the process end where it waits for work, else end it; nothing is waited for."""
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
            os._exit(0)  # to take apart all that it has loaded costs 0.2 s of CPU
        answer: tuple[Any, Exception | None]
        try:
            answer = work(*given), None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            answer = None, _portable(error)
        del given
        try:
            channel.send(answer)
        except LakeFull as error:
            channel.send((None, error))
        del answer


def _portable(error: Exception) -> Exception:
    """Return an error, or its text where it cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:  # noqa: BLE001 - errors may raise anything here
        return RuntimeError(text)
    error.add_note(text)
    return error


def _describe_exit(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"code {code}"

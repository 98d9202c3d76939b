"""Waits for a node: until it reports a block, or a timeout.

A node started with ``--db-event-fifo PATH`` writes an event of 84 bytes to that named pipe whenever
a block was applied (ton_api.tl: the constructor, then tonNode.blockIdExt). Events only end a wait:
the block itself is read from the node's files.
"""

from __future__ import annotations

import os
import select
import stat
import time
from contextlib import suppress
from pathlib import Path

_READ_BYTES = 1 << 16


class Wakeup:
    """Waits for events or a timeout; close it after use."""

    def __init__(self, pipe: str) -> None:
        """Use the node's pipe, empty for none; the pipe may be deleted and created again."""
        self._path = Path(pipe) if pipe else None
        self._pipe: int | None = None

    def close(self) -> None:
        """Close the pipe."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def wait(self, seconds: float) -> None:
        """Return when the node writes an event, or after ``seconds``."""
        if self._pipe is None or not self._is_same():
            self.close()
            self._open()
        if self._pipe is None:
            time.sleep(seconds)
            return
        if select.select([self._pipe], [], [], seconds)[0]:
            # Drain the pipe: one poll of the node covers all events.
            with suppress(BlockingIOError):
                while len(os.read(self._pipe, _READ_BYTES)) == _READ_BYTES:
                    pass

    def _open(self) -> None:
        """Open the pipe, if any; for writing, too, else a close by the node ends every wait."""
        if self._path is None:
            return
        with suppress(OSError):
            if stat.S_ISFIFO(self._path.stat().st_mode):
                self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _is_same(self) -> bool:
        """Return whether the open pipe is still the one at the path."""
        if self._path is None or self._pipe is None:
            return False
        with suppress(OSError):
            return os.path.samestat(self._path.stat(), os.fstat(self._pipe))
        return False

"""Reads the output of a statement's process."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from tonlake.api.errors import RequestInvalid

if TYPE_CHECKING:
    import subprocess

_HEAD_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20


class Output:
    """The output of a process, read with limits on bytes and time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take a process with ``stdout`` as a pipe."""
        assert process.stdout is not None  # noqa: S101 - started with a pipe
        self._descriptor = process.stdout.fileno()
        self._held = bytearray()

    def read_line(self, deadline_s: float) -> bytes:
        """Return the next line with its newline, which is missing if the output ends.

        Raises:
            TimeoutError: the deadline has passed.
        """
        while b"\n" not in self._held and len(self._held) < _HEAD_BYTES:
            if not self._read_more(deadline_s):
                break
        end = self._held.find(b"\n") + 1 or len(self._held)
        line = bytes(self._held[:end])
        del self._held[:end]
        return line

    def read_rest(self, most: int, deadline_s: float) -> bytes:
        """Return the rest of the output.

        Raises:
            RequestInvalid: it is more than ``most`` bytes.
            TimeoutError: the deadline has passed.
        """
        while self._read_more(deadline_s):
            if len(self._held) > most:
                raise RequestInvalid(f"the answer has more than {most:,} bytes: select less")
        return bytes(self._held)

    def _read_more(self, deadline_s: float) -> bool:
        """Read the next chunk; False at the end of the output."""
        waiter = select.poll()
        waiter.register(self._descriptor, select.POLLIN)
        left_ms = max(0, int((deadline_s - time.monotonic()) * 1000))
        if not waiter.poll(left_ms):
            raise TimeoutError
        piece = os.read(self._descriptor, _PIECE_BYTES)
        self._held += piece
        return bool(piece)

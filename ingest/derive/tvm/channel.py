"""Messages between the pool and a worker: length, then MessagePack, over a pair of sockets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.ingest.errors import TvmTimeout

if TYPE_CHECKING:
    import socket

_LENGTH_BYTES = 4
_PIECE_BYTES = 1 << 20


class Channel:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        """Take the end over; ``close`` closes it."""
        self._end = end

    def close(self) -> None:
        """Close this end; the other reads end of file."""
        self._end.close()

    def send(self, message: object, deadline_s: float | None = None) -> None:
        """Send one message.

        Raises:
            OSError: the other end is gone.
            TvmTimeout: it did not take the message before the deadline (of the monotonic clock).
        """
        body = msgspec.msgpack.encode(message)
        self._limit(deadline_s)
        try:
            self._end.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        except TimeoutError as error:
            raise TvmTimeout("the worker did not take the call in time") from error

    def receive(self, deadline_s: float | None = None) -> Any:  # noqa: ANN401 - plain data
        """Return the next message.

        Raises:
            EOFError: the other end is gone.
            OSError: likewise.
            TvmTimeout: nothing whole came before the deadline.
            msgspec.DecodeError: what came is no message.
        """
        length = int.from_bytes(self._read(_LENGTH_BYTES, deadline_s), "big")
        return msgspec.msgpack.decode(self._read(length, deadline_s))

    def _read(self, count: int, deadline_s: float | None) -> bytes:
        parts = []
        while count:
            self._limit(deadline_s)
            try:
                part = self._end.recv(min(count, _PIECE_BYTES))
            except TimeoutError as error:
                raise TvmTimeout("the worker did not answer in time") from error
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _limit(self, deadline_s: float | None) -> None:
        """Let the next operation wait until the deadline, and no longer."""
        if deadline_s is None:
            self._end.settimeout(None)
            return
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TvmTimeout("the worker did not answer in time")
        self._end.settimeout(left_s)

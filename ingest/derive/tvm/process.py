"""A worker process and its channel: it starts on demand and is killed if it hangs.

A message is its length followed by MessagePack, over a pair of sockets.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.ingest.errors import TvmCrash, TvmMissing, TvmTimeout

if TYPE_CHECKING:
    from tonlake.ingest.derive.tvm.worker import WorkerSettings

START_S = 30.0
"""Timeout for a new process to load the machine, even on a busy computer."""

HOW_TO_INSTALL = (
    "messages cannot be emulated: no emulator is installed; "
    "install tonlake with its extra [tvm] on x86-64 Linux with CPython 3.11 to 3.13, or name a "
    "libemulator in the setting [tvm] emulator_library"
)


class WorkerProcess:
    """At most one process at a time; not thread-safe."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Store the limits; the process starts on the first call."""
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """Process id; None if there is no process."""
        return None if self._process is None else self._process.pid

    def ask(self, message: object, limit_ms: int) -> list[Any]:
        """Send one message and return the answer; kill the process if it does not answer.

        Raises:
            TvmMissing: no TVM is installed.
            TvmTimeout: no answer within the limit.
            TvmCrash: the process died.
        """
        channel = self._start()
        deadline_s = time.monotonic() + limit_ms / 1000
        is_answered = False
        try:
            channel.send(message, deadline_s)
            answer: list[Any] = channel.receive(deadline_s)
            is_answered = True
        except TvmTimeout:
            raise TvmTimeout(f"the get-method did not end within {limit_ms} ms") from None
        except (EOFError, OSError, msgspec.DecodeError) as error:
            raise TvmCrash("the TVM process died while running the get-method") from error
        finally:
            if not is_answered:  # its answer would be mistaken for that to a later message
                self.stop()
        return answer

    def stop(self) -> None:
        """Kill the process, if there is one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> Channel:
        """Return the channel to a live process, starting one if necessary."""
        if self._channel is not None and self._process is not None and self._process.poll() is None:
            return self._channel
        self.stop()
        here, there = socket.socketpair()
        with there:
            arguments = [str(there.fileno()), msgspec.json.encode(self._settings).decode()]
            # -P: the working folder, which may contain anything, stays off the import path.
            command = [sys.executable, "-P", "-m", "tonlake.ingest.derive.tvm.worker", *arguments]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and numbers
                command,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.starts += 1
        self._channel = Channel(here)
        self._await_ready(self._channel)
        return self._channel

    def _await_ready(self, channel: Channel) -> None:
        """Wait until the new process has loaded the machine."""
        try:
            word, *rest = channel.receive(time.monotonic() + START_S)
        except (EOFError, OSError, TvmTimeout, msgspec.DecodeError) as error:
            self.stop()
            raise TvmCrash("the TVM process did not start") from error
        if word != "ready":
            self.stop()
            what = self._settings.library or HOW_TO_INSTALL
            raise TvmMissing(f"{what} ({rest[0]})")


_LENGTH_BYTES = 4
_PIECE_BYTES = 1 << 20


class Channel:
    """One end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        """Take ownership of ``end``; ``close`` closes it."""
        self._end = end

    def close(self) -> None:
        """Close this end; the other one reads end of file."""
        self._end.close()

    def send(self, message: object, deadline_s: float | None = None) -> None:
        """Send one message.

        Raises:
            OSError: the other end is closed.
            TvmTimeout: it was not sent before the deadline (of the monotonic clock).
        """
        body = msgspec.msgpack.encode(message)
        self._limit(deadline_s)
        try:
            self._end.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        except TimeoutError as error:
            raise TvmTimeout("the worker did not read the call in time") from error

    def receive(self, deadline_s: float | None = None) -> Any:  # noqa: ANN401 - plain data
        """Return the next message.

        Raises:
            EOFError, OSError: the other end is closed.
            TvmTimeout: no complete message arrived before the deadline.
            msgspec.DecodeError: the received bytes are not a message.
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
        """Set the timeout of the next operation to the deadline."""
        if deadline_s is None:
            self._end.settimeout(None)
            return
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TvmTimeout("the worker did not answer in time")
        self._end.settimeout(left_s)

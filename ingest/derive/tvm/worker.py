"""The worker process of the TVM: reads calls from a socket and answers them in order.

Started as ``python -m tonlake.ingest.derive.tvm.worker FD SETTINGS``. A call may crash it; the pool
then starts a new one. A call is pickled; an answer, which a broken process may have written, is
MessagePack, and its first item is ready, missing, ended, made, unaccepted, refused, deep or large.
"""

from __future__ import annotations

import pickle
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    NotAccepted,
    Outcome,
    StackLimits,
    pack_value,
)
from tonlake.ingest.derive.tvm.libemulator import LibraryEmulator, LibraryFault
from tonlake.ingest.derive.tvm.machine.run import run_call
from tonlake.ingest.errors import (
    BocError,
    TvmCrash,
    TvmMissing,
    TvmStackDeep,
    TvmStackLarge,
    TvmTimeout,
)
from tonlake.lake.system import limit_address_space

START_S = 30.0
"""Timeout for a new process to load the machine, even on a busy computer."""

HOW_TO_INSTALL = (
    "messages cannot be emulated: no emulator is installed; "
    "install tonlake with its extra [tvm] on x86-64 Linux with CPython 3.11 to 3.13, or name a "
    "libemulator in the setting [tvm] emulator_library"
)

_LIBRARY_UNUSABLE = (
    "the library {} of the setting [tvm] emulator_library cannot be loaded: name the libemulator "
    "of the node's release, or remove the setting to run get-methods with tonlake's own engine"
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

    def ask(self, call: Call, limit_ms: int) -> Answer:
        """Send a call and return the answer; kill the process if it does not answer.

        Raises:
            TvmMissing: no TVM is installed.
            TvmTimeout: no answer within the limit.
            TvmCrash: the process died.
        """
        channel = self._start()
        deadline_s = time.monotonic() + limit_ms / 1000
        is_answered = False
        try:
            channel.send(pickle.dumps(call, protocol=5), deadline_s)
            answer: Answer = msgspec.msgpack.decode(channel.receive(deadline_s))
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
            word, *rest = msgspec.msgpack.decode(channel.receive(time.monotonic() + START_S))
        except (EOFError, OSError, TvmTimeout, msgspec.DecodeError) as error:
            self.stop()
            raise TvmCrash("the TVM process did not start") from error
        if word != "ready":
            self.stop()
            library = self._settings.library
            what = _LIBRARY_UNUSABLE.format(library) if library else HOW_TO_INSTALL
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

    def send(self, body: bytes, deadline_s: float | None = None) -> None:
        """Send one message.

        Raises:
            OSError: the other end is closed.
            TvmTimeout: it was not sent before the deadline (of the monotonic clock).
        """
        self._limit(deadline_s)
        try:
            self._end.sendall(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        except TimeoutError as error:
            raise TvmTimeout("the worker did not read the call in time") from error

    def receive(self, deadline_s: float | None = None) -> bytes:
        """Return the next message.

        Raises:
            EOFError, OSError: the other end is closed.
            TvmTimeout: no complete message arrived before the deadline.
        """
        length = int.from_bytes(self._read(_LENGTH_BYTES, deadline_s), "big")
        return self._read(length, deadline_s)

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


Answer = list[Any]
Call = GetMethodCall | EmulationCall
_NO_MEMORY = "std::bad_alloc"
_RECURSION = 5000
"""Frames of Python: lists in arguments and results nest thousands of pairs deep."""


class WorkerSettings(msgspec.Struct, frozen=True):
    """Limits of one worker: its memory, and the size of the stacks that it returns."""

    memory_bytes: int
    stack_entries: int
    stack_depth: int
    result_bytes: int
    library: str = ""
    """Path of a libemulator; empty: get-methods run in tonlake's machine, messages in tonpy."""


def serve(channel: Channel, settings: WorkerSettings) -> None:
    """Answer calls until the other end is closed."""
    try:
        answer = load_engine(settings)
    except (ImportError, OSError) as error:
        channel.send(msgspec.msgpack.encode(["missing", str(error)]))
        return
    channel.send(msgspec.msgpack.encode(["ready"]))
    while True:
        try:
            call = pickle.loads(channel.receive())  # noqa: S301 - the process that started this one
        except EOFError:
            return
        channel.send(msgspec.msgpack.encode(answer(call)))


def load_engine(settings: WorkerSettings) -> Callable[[Call], Answer]:
    """Return a function that answers one call.

    Raises:
        ImportError, OSError: no TVM is installed, or its library cannot be loaded.
    """
    limits = StackLimits(
        entries=settings.stack_entries,
        depth=settings.stack_depth,
        boc_bytes=settings.result_bytes,
    )
    library = settings.library
    engine = _load_library(library, limits) if library else _load_own(limits)

    def answer(call: Call) -> Answer:
        try:
            if isinstance(call, GetMethodCall):
                return _pack_ended(engine.run_call(call))
            return _pack_emulated(engine.run_emulation(call))
        except NoEmulator as error:
            return ["missing", str(error)]
        except TvmStackDeep as error:
            return ["deep", str(error)]
        except TvmStackLarge as error:
            return ["large", str(error)]
        except engine.faults as error:
            if str(error) == _NO_MEMORY:  # the state of this process is unknown
                raise MemoryError from error
            return ["refused", str(error)]

    return answer


class _Engine(NamedTuple):
    """The two functions of an engine, and its exceptions for invalid input."""

    run_call: Callable[[GetMethodCall], Outcome]
    run_emulation: Callable[[EmulationCall], Emulated | NotAccepted]
    faults: tuple[type[Exception], ...]


def _load_own(limits: StackLimits) -> _Engine:
    """Return the machine, and the emulator of tonpy where that is installed."""
    run = partial(run_call, limits=limits)
    try:
        # It is not available on every platform.
        from tonlake.ingest.derive.tvm import engine  # noqa: PLC0415
    except ImportError:
        return _Engine(run, _refuse_emulation, (BocError,))
    return _Engine(run, engine.run_emulation, (BocError, *engine.FAULTS))


class NoEmulator(Exception):
    """Messages cannot be emulated here."""


def _refuse_emulation(_call: EmulationCall) -> Emulated:
    raise NoEmulator(HOW_TO_INSTALL)


def _load_library(path: str, limits: StackLimits) -> _Engine:
    library = LibraryEmulator(path, limits)
    return _Engine(library.run_call, library.run_emulation, (LibraryFault, BocError, TypeError))


def _pack_ended(ended: Outcome) -> Answer:
    return ["ended", ended.exit_code, ended.gas_used, [pack_value(v) for v in ended.stack]]


def _pack_emulated(made: Emulated | NotAccepted) -> Answer:
    if isinstance(made, NotAccepted):
        return ["unaccepted", made.exit_code]
    return ["made", made.transaction, made.account]


def main() -> None:
    """Run the worker configured by the command line."""
    settings = msgspec.json.decode(sys.argv[2], type=WorkerSettings)
    sys.setrecursionlimit(_RECURSION)
    limit_address_space(settings.memory_bytes)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dumps
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(Channel(end), settings)


if __name__ == "__main__":
    main()

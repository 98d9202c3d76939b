"""The interface to the TVM: a pool of worker processes with a bounded queue.

A process is started as ``python -m tonlake.ingest.derive.tvm.pool FD SETTINGS``; it reads calls
from a socket and answers them in order. A call may crash it; the pool then starts a new one. A call
is pickled; an answer, which a broken process may have written, is MessagePack.
"""

from __future__ import annotations

import pickle
import queue
import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import msgspec

from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    NotAccepted,
    Outcome,
    StackLimits,
    pack_value,
    unpack_value,
)
from tonlake.ingest.derive.tvm.libemulator import LibraryEmulator, LibraryFault
from tonlake.ingest.derive.tvm.machine.run import run_call
from tonlake.ingest.errors import (
    BocError,
    TvmBusy,
    TvmCrash,
    TvmError,
    TvmMissing,
    TvmRefusal,
    TvmStackDeep,
    TvmStackLarge,
    TvmTimeout,
)
from tonlake.ingest.settings import TvmSettings
from tonlake.lake.system import limit_address_space

QUEUE = 64
"""Maximum number of get-methods that wait for a process."""
WAIT_MS = 5000
"""Maximum time that a get-method waits for a process, in milliseconds."""
STACK_ENTRIES = 8000
"""Maximum number of values, including nested ones, in a resulting stack."""
STACK_DEPTH = 100
"""Nesting depth that a resulting stack must stay below."""
RESULT_BYTES = 16 << 20
"""Maximum bytes of cells in a resulting stack."""


R = TypeVar("R")


class PoolLoad(msgspec.Struct, frozen=True):
    """The load of a pool: live processes, running and waiting calls, and process starts so far.

    ``restarts`` counts starts that replaced a process that died or was killed.
    """

    alive: int
    busy: int
    waiting: int
    starts: int
    restarts: int


class TvmPool:
    """Runs get-methods and emulates messages in processes that may crash; thread-safe."""

    def __init__(self, settings: TvmSettings) -> None:
        self.settings = settings
        stack = StackLimits(STACK_ENTRIES, STACK_DEPTH, RESULT_BYTES)
        limits = WorkerSettings(settings.memory_mib << 20, stack, settings.emulator_library)
        self._workers = [WorkerProcess(limits, settings.wall_ms) for _ in range(settings.workers)]
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False

    def run_get_method(self, call: GetMethodCall) -> Outcome:
        """Run a get-method and return its outcome.

        Raises TvmMissing, TvmBusy, TvmRefusal, TvmStackDeep, TvmStackLarge; TvmTimeout, TvmCrash:
        the process is gone, and the next call gets a new one.
        """
        if call.gas_limit is None:
            call = msgspec.structs.replace(call, gas_limit=self.settings.gas_limit)
        return self._ask(call, Outcome)

    def emulate(self, call: EmulationCall) -> Emulated | NotAccepted:
        """Emulate a transaction, or raise NotAccepted, or as a get-method."""
        return self._ask(call, Emulated, NotAccepted)  # type: ignore[return-value] # kinds join

    def measure(self) -> PoolLoad:
        """Return the current load."""
        workers = self._workers
        return PoolLoad(
            alive=sum(worker.pid is not None for worker in workers),
            busy=0 if self._closed else len(workers) - self._idle.qsize(),
            waiting=self._waiting,
            starts=sum(worker.starts for worker in workers),
            restarts=sum(max(0, worker.starts - 1) for worker in workers),
        )

    def _ask(self, call: Call, *kinds: type[R]) -> R:
        """Return the result of a call, which must be of one of the kinds."""
        worker = self._acquire()
        try:
            result = worker.ask(call)
        finally:
            self._release(worker)
        if not isinstance(result, kinds):
            raise TvmCrash("the TVM returned an unreadable answer")
        return result

    def close(self) -> None:
        """Stop the processes; busy ones stop after their current call."""
        with self._lock:
            self._closed = True
        while True:
            try:
                self._idle.get_nowait().stop()
            except queue.Empty:
                return

    def _acquire(self) -> WorkerProcess:
        """Return an idle worker; wait for one if all are busy."""
        with self._lock:
            if self._closed:
                raise TvmBusy("the service is stopping")
            if self._idle.empty() and self._waiting >= QUEUE:
                raise TvmBusy("too many get-methods are waiting to run")
            self._waiting += 1
        try:
            return self._idle.get(timeout=WAIT_MS / 1000)
        except queue.Empty as error:
            raise TvmBusy("no TVM became free in time") from error
        finally:
            with self._lock:
                self._waiting -= 1

    def _release(self, worker: WorkerProcess) -> None:
        with self._lock:
            if not self._closed:
                self._idle.put(worker)
                return
        worker.stop()


START_S = 30
"""Timeout for a new process to load the machine, even on a busy computer; seconds."""

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

    def __init__(self, settings: WorkerSettings, limit_ms: int) -> None:
        """Store the limits, also of the time of a call; the process starts on the first one."""
        self._settings = settings
        self._limit_ms = limit_ms
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Connection | None = None
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """Process id; None if there is no process."""
        return None if self._process is None else self._process.pid

    def ask(self, call: Call) -> Result:
        """Send a call and return its result; kill the process if it does not answer.

        Raises TvmMissing, TvmTimeout, TvmCrash; TvmRefusal, TvmStackDeep, TvmStackLarge.
        """
        channel = self._start()
        answer: Answer | None = None
        try:
            channel.send_bytes(pickle.dumps(call, protocol=5))
            answer = _decode(channel.recv_bytes())
        except BlockingIOError:
            raise TvmTimeout(f"the get-method did not end within {self._limit_ms} ms") from None
        except (EOFError, OSError) as error:
            raise TvmCrash("the TVM process died while running the get-method") from error
        except msgspec.DecodeError as error:
            raise TvmCrash("the TVM returned an unreadable answer") from error
        finally:
            if answer is None:  # its answer would be mistaken for that to a later message
                self.stop()
        return _read(answer)

    def stop(self) -> None:
        """Kill the process, if there is one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> Connection:
        """Return the channel to a live process, starting one if necessary."""
        if self._channel is not None and self._process is not None and self._process.poll() is None:
            return self._channel
        self.stop()
        here, there = socket.socketpair()
        limit = struct.pack("ll", *divmod(self._limit_ms * 1000, 1_000_000))  # a timeval
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            here.setsockopt(socket.SOL_SOCKET, option, limit)
        self._channel = channel = Connection(here.detach())
        with there:
            arguments = [str(there.fileno()), msgspec.json.encode(self._settings).decode()]
            # -P: the working folder, which may contain anything, stays off the import path.
            command = [sys.executable, "-P", "-m", "tonlake.ingest.derive.tvm.pool", *arguments]
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and numbers
                command,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.starts += 1
        with suppress(EOFError, OSError):
            if channel.poll(START_S):
                problem = channel.recv_bytes().decode(errors="replace")
                if not problem:
                    return channel
                self.stop()
                library = self._settings.library
                what = _LIBRARY_UNUSABLE.format(library) if library else HOW_TO_INSTALL
                raise TvmMissing(f"{what} ({problem})")
        self.stop()
        raise TvmCrash("the TVM process did not start")


class Returned(msgspec.Struct, frozen=True, tag=True):
    """The outcome of a get-method; ``stack`` is that of ``pack_value``."""

    exit_code: int
    gas_used: int
    stack: list[Any]


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Why a call has no result: the name of an exception, and its message."""

    kind: str
    reason: str


Call = GetMethodCall | EmulationCall
Answer = Returned | Emulated | NotAccepted | Refusal
Result = Outcome | Emulated | NotAccepted
_decode = msgspec.msgpack.Decoder[Answer](Answer).decode
_REFUSALS = {each.__name__: each for each in (TvmMissing, TvmStackDeep, TvmStackLarge, TvmRefusal)}


def _read(answer: Answer) -> Result:
    """Return what a worker answered, which is untrusted; raise its refusal."""
    if isinstance(answer, Refusal):
        raise _REFUSALS.get(answer.kind, TvmCrash)(answer.reason)
    if not isinstance(answer, Returned):
        return answer
    try:
        stack = tuple(unpack_value(value) for value in answer.stack)
    except (ValueError, TypeError, IndexError) as error:
        raise TvmCrash("the TVM returned an unreadable answer") from error
    return Outcome(answer.exit_code, answer.gas_used, stack)


_NO_MEMORY = "std::bad_alloc"
_RECURSION = 5000
"""Frames of Python: lists in arguments and results nest thousands of pairs deep."""


class WorkerSettings(msgspec.Struct, frozen=True):
    """Limits of one worker: its memory, and the size of the stacks that it returns."""

    memory_bytes: int
    stack: StackLimits
    library: str = ""
    """Path of a libemulator; empty: get-methods run in tonlake's machine, messages in tonpy."""


def serve(channel: Connection, settings: WorkerSettings) -> None:
    """Answer calls until the other end is closed."""
    try:
        answer = load_engine(settings)
    except (ImportError, OSError) as error:
        channel.send_bytes(str(error).encode() or b"unknown")
        return
    channel.send_bytes(b"")
    with suppress(EOFError):
        while True:
            call = pickle.loads(channel.recv_bytes())  # noqa: S301 - of the process that started this
            channel.send_bytes(msgspec.msgpack.encode(answer(call)))


def load_engine(settings: WorkerSettings) -> Callable[[Call], Answer]:
    """Return a function that answers one call; raise ImportError or OSError if there is no TVM."""
    run, emulate, faults = _load_library(settings) if settings.library else _load_own(settings)

    def answer(call: Call) -> Answer:
        try:
            if isinstance(call, EmulationCall):
                return emulate(call)
            ended = run(call)
            return Returned(ended.exit_code, ended.gas_used, [pack_value(v) for v in ended.stack])
        except TvmError as error:
            return Refusal(type(error).__name__, str(error))
        except faults as error:
            if str(error) == _NO_MEMORY:  # the state of this process is unknown
                raise MemoryError from error
            return Refusal(TvmRefusal.__name__, str(error))

    return answer


Engine = tuple[
    Callable[[GetMethodCall], Outcome],
    Callable[[EmulationCall], Emulated | NotAccepted],
    tuple[type[Exception], ...],
]
"""What runs get-methods, what emulates, and the exceptions of both for invalid input."""


def _load_own(settings: WorkerSettings) -> Engine:
    """Return the machine, and the emulator of tonpy where that is installed."""
    run = partial(run_call, limits=settings.stack)
    try:
        # It is not available on every platform.
        from tonlake.ingest.derive.tvm import engine  # noqa: PLC0415
    except ImportError:
        return run, _refuse_emulation, (BocError,)
    return run, engine.run_emulation, (BocError, *engine.FAULTS)


def _refuse_emulation(_call: EmulationCall) -> Emulated:
    raise TvmMissing(HOW_TO_INSTALL)


def _load_library(settings: WorkerSettings) -> Engine:
    library = LibraryEmulator(settings.library, settings.stack)
    return library.run_call, library.run_emulation, (LibraryFault, BocError, TypeError)


def main() -> None:
    """Run the worker configured by the command line."""
    settings = msgspec.json.decode(sys.argv[2], type=WorkerSettings)
    sys.setrecursionlimit(_RECURSION)
    limit_address_space(settings.memory_bytes)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dumps
    with Connection(int(sys.argv[1])) as channel:
        serve(channel, settings)


if __name__ == "__main__":
    main()

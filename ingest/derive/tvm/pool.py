"""The interface to the TVM: a pool of worker processes with a bounded queue."""

import queue
import threading
from typing import TypeVar

import msgspec

from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    NotAccepted,
    Outcome,
    StackLimits,
)
from tonlake.ingest.derive.tvm.worker import Call, WorkerProcess, WorkerSettings
from tonlake.ingest.errors import TvmBusy, TvmCrash
from tonlake.ingest.settings import TvmSettings

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

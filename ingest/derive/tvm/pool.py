"""The TVM as the rest of the product sees it: a few worker processes, and a bounded queue."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    NotAccepted,
    Outcome,
)
from tonlake.ingest.derive.tvm.process import WorkerProcess
from tonlake.ingest.derive.tvm.stack import unpack_value
from tonlake.ingest.derive.tvm.worker import WorkerSettings, pack_call
from tonlake.ingest.errors import (
    TvmBusy,
    TvmCrash,
    TvmError,
    TvmRefusal,
    TvmStackDeep,
    TvmStackLarge,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from tonlake.ingest.settings import TvmSettings

QUEUE = 64
"""Get-methods that may wait for a process."""
WAIT_MS = 5000
"""Milliseconds a get-method may wait for a process."""
STACK_ENTRIES = 8000
"""Most values, nested ones included, in a get-method's stack."""
STACK_DEPTH = 100
"""A get-method's stack is nested less deep than this."""
RESULT_BYTES = 16 << 20
"""Most bytes of cells in a get-method's resulting stack."""

_REFUSALS: dict[str, type[TvmError]] = {
    "refused": TvmRefusal,
    "deep": TvmStackDeep,
    "large": TvmStackLarge,
}


class PoolLoad(msgspec.Struct, frozen=True):
    """What a pool does: processes that live, calls at work and waiting, and starts so far.

    ``restarts`` are starts in place of a process that died or was killed.
    """

    alive: int
    busy: int
    waiting: int
    starts: int
    restarts: int


class TvmPool:
    """Runs get-methods and emulates messages in processes that may die of it; for all threads."""

    def __init__(self, settings: TvmSettings) -> None:
        """Make the pool; processes are started when there is something to run."""
        self._settings = settings
        limits = WorkerSettings(
            memory_bytes=settings.memory_mib << 20,
            stack_entries=STACK_ENTRIES,
            stack_depth=STACK_DEPTH,
            result_bytes=RESULT_BYTES,
            library=settings.emulator_library,
        )
        self._workers = [WorkerProcess(limits) for _ in range(settings.workers)]
        self._idle: queue.LifoQueue[WorkerProcess] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False

    def run_get_method(self, call: GetMethodCall) -> Outcome:
        """Run a get-method and return how it ended.

        Raises:
            TvmMissing: no TVM is installed.
            TvmBusy: too many calls wait already, or this one waited too long.
            TvmTimeout, TvmCrash: the process was killed, or died; the next call gets another.
            TvmRefusal: the machine does not take the call.
            TvmStackDeep, TvmStackLarge: the resulting stack is beyond the limits.
        """
        [outcome] = self.run_get_methods((call,))
        if isinstance(outcome, TvmError):
            raise outcome
        return outcome

    def run_get_methods(self, calls: Iterable[GetMethodCall]) -> Generator[Outcome | TvmError]:
        """Run get-methods in one process; yield in order how each ended, or why it did not.

        Raises:
            TvmMissing, TvmBusy: as ``run_get_method``.
            TvmCrash: a process did not start.
        """
        worker = self._take()
        try:
            messages = (pack_call(self._bound(call)) for call in calls)
            for answer in worker.ask_all(messages, self._settings.wall_ms):
                yield answer if isinstance(answer, TvmError) else _read_ended(answer)
        finally:
            self._give_back(worker)

    def _bound(self, call: GetMethodCall) -> GetMethodCall:
        if call.gas_limit is not None:
            return call
        return msgspec.structs.replace(call, gas_limit=self._settings.gas_limit)

    def emulate(self, call: EmulationCall) -> Emulated | NotAccepted:
        """Make a transaction, or return that the contract does not accept the message.

        Raises:
            TvmMissing, TvmBusy, TvmTimeout, TvmCrash, TvmRefusal: as ``run_get_method``.
        """
        return _read_emulated(self._ask(pack_call(call)))

    def measure(self) -> PoolLoad:
        """Return what the pool does just now."""
        workers = self._workers
        return PoolLoad(
            alive=sum(worker.pid is not None for worker in workers),
            busy=0 if self._closed else len(workers) - self._idle.qsize(),
            waiting=self._waiting,
            starts=sum(worker.starts for worker in workers),
            restarts=sum(max(0, worker.starts - 1) for worker in workers),
        )

    def _ask(self, message: object) -> list[Any]:
        """Give a message to a worker and return what it answers.

        Raises:
            TvmError: none is free, it does not answer, or it refuses.
        """
        worker = self._take()
        try:
            answer = worker.ask(message, self._settings.wall_ms)
        finally:
            self._give_back(worker)
        refusal = _read_refusal(answer)
        if refusal is not None:
            raise refusal
        return answer

    def close(self) -> None:
        """Stop the processes; those at work stop when their call ends."""
        with self._lock:
            self._closed = True
        while True:
            try:
                self._idle.get_nowait().stop()
            except queue.Empty:
                return

    def _take(self) -> WorkerProcess:
        """Return a worker that is idle, or wait for one in the queue."""
        with self._lock:
            if self._closed:
                raise TvmBusy("the service is stopping")
            if self._idle.empty() and self._waiting >= QUEUE:
                raise TvmBusy("too many get-methods wait to be run")
            self._waiting += 1
        try:
            return self._idle.get(timeout=WAIT_MS / 1000)
        except queue.Empty as error:
            raise TvmBusy("no TVM became free in time") from error
        finally:
            with self._lock:
                self._waiting -= 1

    def _give_back(self, worker: WorkerProcess) -> None:
        with self._lock:
            if not self._closed:
                self._idle.put(worker)
                return
        worker.stop()


@contextmanager
def _distrust() -> Iterator[None]:
    """Turn what shows that an answer is none into TvmCrash."""
    try:
        yield
    except (ValueError, TypeError, IndexError) as error:
        raise TvmCrash("the TVM gave an answer that cannot be read") from error


def _read_refusal(answer: list[Any]) -> TvmError | None:
    """Return why the machine did not take a call; None where it did."""
    with _distrust():
        kind = _REFUSALS.get(answer[0])
        return None if kind is None else kind(str(answer[1]))


def _read_ended(answer: list[Any]) -> Outcome | TvmError:
    try:
        return _read_refusal(answer) or _read_outcome(answer)
    except TvmCrash as error:
        return error


def _read_outcome(answer: list[Any]) -> Outcome:
    """Return the outcome that a worker wrote; its content is not trusted."""
    with _distrust():
        _word, exit_code, gas_used, packed = answer
        stack = tuple(unpack_value(value) for value in packed)
        return Outcome(int(exit_code), int(gas_used), stack)


def _read_emulated(answer: list[Any]) -> Emulated | NotAccepted:
    """Return the transaction that a worker wrote, or that there is none."""
    with _distrust():
        if answer[0] == "unaccepted":
            return NotAccepted(None if answer[1] is None else int(answer[1]))
        _word, transaction, account = answer
        return Emulated(bytes(transaction), bytes(account))

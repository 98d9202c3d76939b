"""The worker process of the TVM: reads calls from a socket and answers them in order.

Started as ``python -m tonlake.ingest.derive.tvm.worker FD SETTINGS``. A call may crash it; the pool
then starts a new one. The first item of a call is run or emulate; that of an answer is ready,
missing, ended, made, unaccepted, refused, deep or large.
"""

from __future__ import annotations

import resource
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.ingest.derive.tvm.call import (
    Emulated,
    EmulationCall,
    GetMethodCall,
    NotAccepted,
    Outcome,
)
from tonlake.ingest.derive.tvm.context import Context
from tonlake.ingest.derive.tvm.libemulator import LibraryEmulator, LibraryFault
from tonlake.ingest.derive.tvm.machine.run import run_call
from tonlake.ingest.derive.tvm.process import HOW_TO_INSTALL, Channel
from tonlake.ingest.derive.tvm.stack import StackLimits, pack_value, unpack_value
from tonlake.ingest.errors import BocError, TvmStackDeep, TvmStackLarge

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = list[Any]
Call = GetMethodCall | EmulationCall
_CALLS: dict[str, type[Call]] = {"run": GetMethodCall, "emulate": EmulationCall}
_STACKED = frozenset({"stack", "previous"})
"""Fields of calls that hold stack values."""

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
        channel.send(["missing", str(error)])
        return
    channel.send(["ready"])
    while True:
        try:
            message = channel.receive()
        except EOFError:
            return
        channel.send(answer(message))


def load_engine(settings: WorkerSettings) -> Callable[[Any], Answer]:
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

    def answer(message: Any) -> Answer:  # noqa: ANN401 - plain data
        try:
            call = unpack_call(message)
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


def pack_call(call: Call) -> list[Any]:
    """Return a call as plain data: its word and its fields, in order."""
    word = next(word for word, kind in _CALLS.items() if isinstance(call, kind))
    fields = msgspec.structs.asdict(call).items()
    return [word, *(_pack_field(name, value) for name, value in fields)]


def _pack_field(name: str, value: Any) -> Any:  # noqa: ANN401 - plain data
    if isinstance(value, Context):
        return msgspec.to_builtins(value, builtin_types=(bytes,))
    return pack_value(value) if name in _STACKED else value


def _unpack_field(name: str, value: Any) -> Any:  # noqa: ANN401 - plain data
    if name == "context":
        return msgspec.convert(value, Context)
    return unpack_value(value) if name in _STACKED else value


def unpack_call(message: list[Any]) -> Call:
    """Return the call encoded by ``pack_call``."""
    word, *values = message
    kind = _CALLS[word]
    fields = zip(kind.__struct_fields__, values, strict=True)
    return kind(*(_unpack_field(name, value) for name, value in fields))


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
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory_bytes, settings.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dumps
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(Channel(end), settings)


if __name__ == "__main__":
    main()

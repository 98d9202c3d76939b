"""The process in which the TVM runs: reads calls from a socket, answers them, one after another.

Started as ``python -m tonlake.ingest.derive.tvm.worker FD SETTINGS``. It may die of any call; the
pool starts another one. A call begins with a word, run or emulate, and so does an answer: ready,
missing, ended, made, unaccepted, refused, deep, large.
"""

from __future__ import annotations

import resource
import socket
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.ingest.derive.tvm.call import Emulated, EmulationCall, GetMethodCall, NotAccepted
from tonlake.ingest.derive.tvm.libemulator import LibraryEmulator
from tonlake.ingest.derive.tvm.process import Channel
from tonlake.ingest.derive.tvm.stack import pack_value, unpack_value
from tonlake.ingest.errors import TvmStackDeep, TvmStackLarge

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = list[Any]
RUN, EMULATE = "run", "emulate"
_NO_MEMORY = "std::bad_alloc"


class WorkerSettings(msgspec.Struct, frozen=True):
    """Limits of one worker: its memory, and the size of the stacks it gives out."""

    memory_bytes: int
    stack_entries: int
    stack_depth: int
    result_bytes: int
    library: str = ""
    """Path of a libemulator that makes transactions; empty takes that of tonpy."""


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
    """Return the function that answers one call.

    Raises:
        ImportError, OSError: no TVM is installed, or its library cannot be loaded.
    """
    # They need tonpy, which not every machine has.
    from tonlake.ingest.derive.tvm import engine  # noqa: PLC0415

    limits = engine.StackLimits(
        entries=settings.stack_entries,
        depth=settings.stack_depth,
        boc_bytes=settings.result_bytes,
    )

    def run(message: list[Any]) -> Answer:
        ended = engine.run_call(unpack_call(message), limits)
        return ["ended", ended.exit_code, ended.gas_used, [pack_value(v) for v in ended.stack]]

    run_emulation = (
        LibraryEmulator(settings.library).run_emulation
        if settings.library
        else engine.run_emulation
    )

    def emulate(message: list[Any]) -> Answer:
        return _pack_emulated(run_emulation(unpack_emulation(message)))

    tasks = {RUN: run, EMULATE: emulate}

    def answer(message: Any) -> Answer:  # noqa: ANN401 - plain data
        try:
            return tasks[message[0]](message[1:])
        except TvmStackDeep as error:
            return ["deep", str(error)]
        except TvmStackLarge as error:
            return ["large", str(error)]
        except engine.FAULTS as error:
            if str(error) == _NO_MEMORY:  # the state of this process is unknown
                raise MemoryError from error
            return ["refused", str(error)]

    return answer


def pack_call(call: GetMethodCall) -> list[Any]:
    """Return a call as plain data."""
    stack, c7 = ([pack_value(value) for value in values] for values in (call.stack, call.c7))
    return [RUN, call.code, call.data, stack, c7, call.libraries, call.gas_limit]


def unpack_call(message: list[Any]) -> GetMethodCall:
    """Return the call that ``pack_call`` wrote, the word left out."""
    code, data, packed_stack, packed_c7, libraries, gas_limit = message
    stack, c7 = (
        tuple(unpack_value(value) for value in values) for values in (packed_stack, packed_c7)
    )
    return GetMethodCall(code, data, stack, c7, libraries, gas_limit)


def pack_emulation(call: EmulationCall) -> list[Any]:
    """Return a transaction to be made as plain data."""
    fields = msgspec.structs.asdict(call)
    return [EMULATE, *(fields | {"previous": pack_value(call.previous)}).values()]


def unpack_emulation(message: list[Any]) -> EmulationCall:
    """Return the call that ``pack_emulation`` wrote, the word left out."""
    call = EmulationCall(*message)
    return msgspec.structs.replace(call, previous=unpack_value(call.previous))


def _pack_emulated(made: Emulated | NotAccepted) -> Answer:
    if isinstance(made, NotAccepted):
        return ["unaccepted", made.exit_code]
    return ["made", made.transaction, made.account]


def main() -> None:
    """Run the worker that the command line describes."""
    settings = msgspec.json.decode(sys.argv[2], type=WorkerSettings)
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory_bytes, settings.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core file is left behind
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(Channel(end), settings)


if __name__ == "__main__":
    main()

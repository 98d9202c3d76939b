"""Instructions that build cells: ``crypto/vm/cellops.cpp``."""

from collections.abc import Callable
from functools import partial

from tonlake.ingest.decode.cell.build import MAX_BITS, MAX_REFS
from tonlake.ingest.derive.tvm.machine.cell import Builder, Cell
from tonlake.ingest.derive.tvm.machine.code import QUIET, SIGNED, maker, numbered, step
from tonlake.ingest.derive.tvm.machine.dictionary import Content, read_content
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.instruction.number import fits
from tonlake.ingest.derive.tvm.machine.state import CREATE_GAS, Machine, Step

_EMPTY = Builder()
_STORED, _NO_ROOM, _NO_FIT = 0, -1, 1


step("NEWC")(lambda machine: machine.stack.append(_EMPTY))
step("ENDC")(lambda machine: machine.stack.append(machine.finish(machine.pop_builder())))


@step("ENDXC")
def _end_special(machine: Machine) -> None:
    machine.need(2)
    special = machine.pop_bool()
    builder = machine.pop_builder()
    machine.use(CREATE_GAS)
    machine.stack.append(builder.cell(special=special))


_REVERSE = {"": False, "R": True}
_ST, _STX = "ST{kind}{reverse}{quiet}", "ST{kind}X{reverse}{quiet}"


@numbered(_ST, _STX, 257, count=3, kind={"I": True}, reverse=_REVERSE, quiet=QUIET)
@numbered(_ST, _STX, 256, count=3, kind={"U": False}, reverse=_REVERSE, quiet=QUIET)
def _store_int(machine: Machine, bits: int, *, kind: bool, reverse: bool, quiet: bool) -> None:
    """Store an integer; a quiet form leaves 0, or the operands with -1 (no room) or 1 (no fit)."""
    machine.need(2)
    if reverse:
        value, builder = machine.pop_int(), machine.pop_builder()
    else:
        builder, value = machine.pop_builder(), machine.pop_int()
    failure = _STORED
    if not builder.fits(bits):
        failure = _NO_ROOM
    elif not fits(value, bits, signed=kind):
        failure = _NO_FIT
    if failure:
        if not quiet:
            raise VmError(Exit.CELL_OVERFLOW if failure == _NO_ROOM else Exit.RANGE_CHECK)
        machine.stack += (builder, value) if reverse else (value, builder)
        machine.stack.append(failure)
        return
    machine.stack.append(builder.store(value & (1 << bits) - 1, bits))  # type: ignore[operator]
    if quiet:
        machine.stack.append(_STORED)


def pop_ref(machine: Machine) -> Content:
    """Pop a cell, to be stored as a reference."""
    return 0, 0, (machine.pop_cell(),)


def pop_slice(machine: Machine) -> Content:
    """Pop a slice, to be stored."""
    return read_content(machine.pop_slice())


def pop_builder(machine: Machine) -> Content:
    """Pop a builder, to be stored."""
    part = machine.pop_builder()
    return part.value, part.bits, part.refs


def _pop_finished(machine: Machine) -> Content:
    """Pop a builder, to be stored as a finished cell in a reference."""
    return 0, 0, (machine.pop_builder(),)  # type: ignore[return-value] # finished when it fits


@step(
    "ST{pop}{reverse}{quiet}",
    pop={"REF": pop_ref, "SLICE": pop_slice, "B": pop_builder, "BREF": _pop_finished},
    reverse=_REVERSE,
    quiet=QUIET,
)
def _store(
    machine: Machine, pop: Callable[[Machine], Content], *, reverse: bool, quiet: bool
) -> None:
    """Store what ``pop`` takes off the stack; ``reverse`` expects the builder below it."""
    machine.need(2)
    one, other = machine.stack[-2], machine.stack[-1]
    if reverse:
        content, builder = pop(machine), machine.pop_builder()
    else:
        builder, content = machine.pop_builder(), pop(machine)
    value, bits, refs = content
    if not builder.fits(bits, len(refs)):
        if not quiet:
            raise VmError(Exit.CELL_OVERFLOW)
        machine.stack += (one, other, -1)
        return
    if pop is _pop_finished:
        refs = (machine.finish(refs[0]),)  # type: ignore[arg-type] # a builder
    machine.stack.append(builder.store(value, bits, refs))
    if quiet:
        machine.stack.append(0)


step("ENDCST")(partial(_store, pop=_pop_finished, reverse=True, quiet=False))


def _store_constant(value: int, bits: int, refs: tuple[Cell, ...]) -> Step:
    return lambda machine: machine.stack.append(machine.pop_builder().store(value, bits, refs))


maker("STREFCONST", "STREF2CONST")(lambda *cells: _store_constant(0, 0, cells))
maker("STSLICECONST")(lambda part: _store_constant(*read_content(part)))


@step("ST{signed}LE{size}", signed=SIGNED, size={"4": 4, "8": 8})
def _store_little(machine: Machine, *, size: int, signed: bool) -> None:
    """Store an integer of ``size`` bytes, least significant first."""
    machine.need(2)
    builder, value = machine.pop_builder(), machine.pop_int()
    bits = size * 8
    if not builder.fits(bits):
        raise VmError(Exit.CELL_OVERFLOW)
    if not fits(value, bits, signed=signed):
        raise VmError(Exit.RANGE_CHECK)
    octets = value.to_bytes(size, "little", signed=signed)  # type: ignore[union-attr]
    machine.stack.append(builder.store(int.from_bytes(octets, "big"), bits))


@step("B{measure}", measure={
    "DEPTH": lambda builder: [1 + max((child.depth for child in builder.refs), default=-1)],
    "BITS": lambda builder: [builder.bits],
    "REFS": lambda builder: [len(builder.refs)],
    "BITREFS": lambda builder: [builder.bits, len(builder.refs)],
    "REMBITS": lambda builder: [MAX_BITS - builder.bits],
    "REMREFS": lambda builder: [MAX_REFS - len(builder.refs)],
    "REMBITREFS": lambda builder: [MAX_BITS - builder.bits, MAX_REFS - len(builder.refs)],
})  # fmt: skip
def _measure(machine: Machine, measure: Callable[[Builder], list[int]]) -> None:
    machine.stack += measure(machine.pop_builder())


@numbered("BCHKBITS{quiet}", "BCHKBITS{quiet}", MAX_BITS, quiet=QUIET)
def _check_room(machine: Machine, bits: int, refs: int = 0, *, quiet: bool) -> None:
    fits = machine.pop_builder().fits(bits, refs)
    if quiet:
        machine.push_bool(fits)
    elif not fits:
        raise VmError(Exit.CELL_OVERFLOW)


@step("BCHK{has_bits}REFS{quiet}", has_bits={"": False, "BIT": True}, quiet=QUIET)
def _check_refs(machine: Machine, *, has_bits: bool, quiet: bool) -> None:
    machine.need(2 + has_bits)
    refs = machine.pop_range(7)
    _check_room(machine, machine.pop_range(MAX_BITS) if has_bits else 0, refs, quiet=quiet)


@step("ST{bit}", bit={"ZEROES": 0, "ONES": 1, "SAME": None})
def _store_same(machine: Machine, bit: int | None) -> None:
    """Store a bit several times; None: the bit is on the stack."""
    machine.need(2 if bit is not None else 3)
    found = machine.pop_range(1) if bit is None else bit
    bits = machine.pop_range(MAX_BITS)
    machine.stack.append(machine.pop_builder().store(((1 << bits) - 1) * found, bits))


step("BTOS")(lambda machine: machine.stack.append(machine.pop_builder().cell().slice()))

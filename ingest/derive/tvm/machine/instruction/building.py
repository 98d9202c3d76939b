"""Instructions that build cells: ``crypto/vm/cellops.cpp``."""

from collections.abc import Callable
from functools import partial

from tonlake.ingest.decode.cell.build import MAX_BITS, MAX_REFS
from tonlake.ingest.derive.tvm.machine.cell import Builder, Cell, Slice, special_cell
from tonlake.ingest.derive.tvm.machine.code import maker, numbered, step
from tonlake.ingest.derive.tvm.machine.fault import CELL_OVERFLOW, RANGE_CHECK, VmError
from tonlake.ingest.derive.tvm.machine.instruction.number import fits_signed, fits_unsigned
from tonlake.ingest.derive.tvm.machine.state import CREATE_GAS, NAN, Machine, Step

Content = tuple[int, int, tuple[Cell, ...]]

_EMPTY = Builder()
_INTEGER_BITS = 257
_STORED, _NO_ROOM, _NO_FIT = 0, -1, 1


step("NEWC")(lambda machine: machine.stack.append(_EMPTY))
step("ENDC")(lambda machine: machine.stack.append(machine.finish(machine.pop_builder())))


@step("ENDXC")
def _end_special(machine: Machine) -> None:
    machine.need(2)
    special = machine.pop_bool()
    builder = machine.pop_builder()
    machine.use(CREATE_GAS)
    if special:
        machine.stack.append(special_cell(builder.value, builder.bits, builder.refs))
    else:
        machine.stack.append(builder.cell())


def _store_int(machine: Machine, bits: int, *, signed: bool, reverse: bool, quiet: bool) -> None:
    """Store an integer; a quiet form leaves 0, or the operands with -1 (no room) or 1 (no fit)."""
    machine.need(2)
    if reverse:
        value, builder = machine.pop_int(), machine.pop_builder()
    else:
        builder, value = machine.pop_builder(), machine.pop_int()
    failure = _STORED
    if not builder.fits(bits):
        failure = _NO_ROOM
    elif value is NAN or not (fits_signed if signed else fits_unsigned)(value, bits):  # type: ignore[arg-type]
        failure = _NO_FIT
    if failure:
        if not quiet:
            raise VmError(CELL_OVERFLOW if failure == _NO_ROOM else RANGE_CHECK)
        machine.stack += (builder, value) if reverse else (value, builder)
        machine.stack.append(failure)
        return
    machine.stack.append(builder.store(value & (1 << bits) - 1, bits))  # type: ignore[operator]
    if quiet:
        machine.stack.append(_STORED)


for _signed in (False, True):
    for _reverse in (False, True):
        for _quiet in (False, True):
            _name, _end = f"ST{'UI'[_signed]}", "R" * _reverse + "Q" * _quiet
            _run = partial(_store_int, signed=_signed, reverse=_reverse, quiet=_quiet)
            _most = _INTEGER_BITS - (not _signed)
            numbered(_name + _end, f"{_name}X{_end}", _run, _most, count=3)


@maker("STU")
def _store_fast(bits: int) -> Step:
    """Return STU, which most contracts run most."""
    most = 1 << bits

    def run(machine: Machine) -> None:
        stack = machine.stack
        if len(stack) > 1:
            builder, value = stack[-1], stack[-2]
            if (
                builder.__class__ is Builder
                and value.__class__ is int
                and 0 <= value < most
                and builder.bits + bits <= MAX_BITS
            ):
                stack.pop()
                stack[-1] = Builder(
                    builder.value << bits | value, builder.bits + bits, builder.refs
                )
                return
        _store_int(machine, bits, signed=False, reverse=False, quiet=False)

    return run


def _pop_ref(machine: Machine) -> Content:
    return 0, 0, (machine.pop_cell(),)


def _pop_slice(machine: Machine) -> Content:
    part = machine.pop_slice()
    return part.uint(), part.bits, part.refs


def _pop_builder(machine: Machine) -> Content:
    part = machine.pop_builder()
    return part.value, part.bits, part.refs


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
    if not builder.fits(content[1], len(content[2])):
        if not quiet:
            raise VmError(CELL_OVERFLOW)
        machine.stack += (one, other, -1)
        return
    machine.stack.append(builder.store(*content))
    if quiet:
        machine.stack.append(0)


def _store_builder_ref(machine: Machine, *, reverse: bool, quiet: bool) -> None:
    """Store a builder as a finished cell in a reference."""
    machine.need(2)
    one, other = machine.stack[-2], machine.stack[-1]
    if reverse:
        inner, builder = machine.pop_builder(), machine.pop_builder()
    else:
        builder, inner = machine.pop_builder(), machine.pop_builder()
    if not builder.fits(0, 1):
        if not quiet:
            raise VmError(CELL_OVERFLOW)
        machine.stack += (one, other, -1)
        return
    machine.stack.append(builder.store(0, 0, (machine.finish(inner),)))
    if quiet:
        machine.stack.append(0)


for _quiet in (False, True):
    for _reverse in (False, True):
        _end = "R" * _reverse + "Q" * _quiet
        for _name, _pop in (("STREF", _pop_ref), ("STSLICE", _pop_slice), ("STB", _pop_builder)):
            step(_name + _end)(partial(_store, pop=_pop, reverse=_reverse, quiet=_quiet))
        step(f"STBREF{_end}")(partial(_store_builder_ref, reverse=_reverse, quiet=_quiet))
step("ENDCST")(partial(_store_builder_ref, reverse=True, quiet=False))


@maker("STREFCONST", "STREF2CONST")
def _store_constant_refs(*cells: Cell) -> Step:
    def run(machine: Machine) -> None:
        machine.stack.append(machine.pop_builder().store(0, 0, cells))

    return run


@maker("STSLICECONST")
def _store_constant(part: Slice) -> Step:
    value, bits, refs = part.uint(), part.bits, part.refs

    def run(machine: Machine) -> None:
        machine.stack.append(machine.pop_builder().store(value, bits, refs))

    return run


def _store_little(machine: Machine, *, size: int, signed: bool) -> None:
    """Store an integer of ``size`` bytes, least significant first."""
    machine.need(2)
    builder, value = machine.pop_builder(), machine.pop_int()
    bits = size * 8
    if not builder.fits(bits):
        raise VmError(CELL_OVERFLOW)
    if value is NAN or not (fits_signed if signed else fits_unsigned)(value, bits):  # type: ignore[arg-type]
        raise VmError(RANGE_CHECK)
    octets = value.to_bytes(size, "little", signed=signed)  # type: ignore[union-attr]
    machine.stack.append(builder.store(int.from_bytes(octets, "big"), bits))


for _size in (4, 8):
    step(f"STILE{_size}")(partial(_store_little, size=_size, signed=True))
    step(f"STULE{_size}")(partial(_store_little, size=_size, signed=False))


@step("BDEPTH")
def _depth(machine: Machine) -> None:
    refs = machine.pop_builder().refs
    machine.stack.append(1 + max((child.depth for child in refs), default=-1))


step("BBITS")(lambda machine: machine.stack.append(machine.pop_builder().bits))
step("BREFS")(lambda machine: machine.stack.append(len(machine.pop_builder().refs)))


@step("BBITREFS")
def _count_both(machine: Machine) -> None:
    builder = machine.pop_builder()
    machine.stack += (builder.bits, len(builder.refs))


step("BREMBITS")(lambda machine: machine.stack.append(MAX_BITS - machine.pop_builder().bits))
step("BREMREFS")(lambda machine: machine.stack.append(MAX_REFS - len(machine.pop_builder().refs)))


@step("BREMBITREFS")
def _count_free(machine: Machine) -> None:
    builder = machine.pop_builder()
    machine.stack += (MAX_BITS - builder.bits, MAX_REFS - len(builder.refs))


def _check_room(machine: Machine, bits: int, refs: int = 0, *, quiet: bool) -> None:
    fits = machine.pop_builder().fits(bits, refs)
    if quiet:
        machine.push_bool(fits)
    elif not fits:
        raise VmError(CELL_OVERFLOW)


def _check_refs(machine: Machine, *, has_bits: bool, quiet: bool) -> None:
    machine.need(2 + has_bits)
    refs = machine.pop_range(7)
    _check_room(machine, machine.pop_range(MAX_BITS) if has_bits else 0, refs, quiet=quiet)


for _quiet in (False, True):
    _end, _check = "Q" * _quiet, partial(_check_room, quiet=_quiet)
    numbered(f"BCHKBITS{_end}", f"BCHKBITS{_end}", _check, MAX_BITS)
    step(f"BCHKREFS{_end}")(partial(_check_refs, has_bits=False, quiet=_quiet))
    step(f"BCHKBITREFS{_end}")(partial(_check_refs, has_bits=True, quiet=_quiet))


def _store_same(machine: Machine, bit: int | None) -> None:
    """Store a bit several times; None: the bit is on the stack."""
    machine.need(2 if bit is not None else 3)
    found = machine.pop_range(1) if bit is None else bit
    bits = machine.pop_range(MAX_BITS)
    machine.stack.append(machine.pop_builder().store(((1 << bits) - 1) * found, bits))


step("STZEROES")(partial(_store_same, bit=0))
step("STONES")(partial(_store_same, bit=1))
step("STSAME")(partial(_store_same, bit=None))
step("BTOS")(lambda machine: machine.stack.append(machine.pop_builder().cell().slice()))

"""Instructions that read cells and slices: ``crypto/vm/cellops.cpp``."""

from collections.abc import Callable
from typing import Any

from tonlake.ingest.derive.tvm.machine.cell import Cell, Slice
from tonlake.ingest.derive.tvm.machine.code import (
    KEEPS,
    QUIET,
    SIGNED,
    maker,
    numbered,
    step,
    with_operands,
)
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.state import Machine

_MAX_BITS, _MAX_REFS = 1023, 4
_LIBRARIES_SINCE = 5


maker("PUSHREF")(lambda cell: lambda machine: machine.stack.append(cell))
maker("PUSHREFSLICE")(lambda cell: lambda machine: machine.stack.append(machine.load(cell)))
maker("PUSHSLICE")(lambda part: lambda machine: machine.stack.append(part))
step("CTOS")(lambda machine: machine.stack.append(machine.load(machine.pop_cell())))


@step("ENDS")
def _check_end(machine: Machine) -> None:
    part = machine.pop_slice()
    if part.bits or part.ref_count:
        raise VmError(Exit.CELL_UNDERFLOW)


def _leave(
    machine: Machine, part: Slice, found: tuple[Any, ...] | None, *, keeps: bool, quiet: bool
) -> None:
    """Push what was read, and the rest of the slice that ``found`` ends in if it ``keeps`` it."""
    if keeps or found is None:
        machine.leave(found, quiet=quiet, kept=(part,) if keeps else ())
    else:
        machine.leave(found[:-1], quiet=quiet)


_LD, _LDX = "{keeps}LD{kind}{quiet}", "{keeps}LD{kind}X{quiet}"


@numbered(_LD, _LDX, 257, kind={"I": True}, keeps=KEEPS, quiet=QUIET)
@numbered(_LD, _LDX, 256, kind={"U": False}, keeps=KEEPS, quiet=QUIET)
def _load_int(machine: Machine, bits: int, *, kind: bool, keeps: bool, quiet: bool) -> None:
    """Read an integer, signed or not by its ``kind``."""
    part = machine.pop_slice()
    found = None
    if part.has(bits):
        value = part.peek(bits)
        found = value - (value >> bits - 1 << bits) if kind and bits else value, part.skip(bits)
    _leave(machine, part, found, keeps=keeps, quiet=quiet)


@numbered("{keeps}LDSLICE{quiet}", "{keeps}LDSLICEX{quiet}", _MAX_BITS, keeps=KEEPS, quiet=QUIET)
def _load_slice(machine: Machine, bits: int, *, keeps: bool, quiet: bool) -> None:
    part = machine.pop_slice()
    found = None
    if part.has(bits):
        found = part.take(bits), part.skip(bits)
    _leave(machine, part, found, keeps=keeps, quiet=quiet)


@with_operands("PLDUZ")
def _peek_padded(bits: int, machine: Machine) -> None:
    part = machine.pop_slice()
    found = min(bits, part.bits)
    machine.stack += (part, part.peek(found) << bits - found)


@step("LDREF")
def _load_ref(machine: Machine) -> None:
    part = machine.pop_slice()
    machine.stack += (part.child(), part.skip(0, 1))


@step("LDREFRTOS")
def _load_ref_slice(machine: Machine) -> None:
    part = machine.pop_slice()
    child = part.child()
    machine.stack += (part.skip(0, 1), machine.load(child))


_SIZES = {"4": 4, "8": 8}


@step("{keeps}LD{signed}LE{size}{quiet}", signed=SIGNED, size=_SIZES, keeps=KEEPS, quiet=QUIET)
def _read_little(machine: Machine, *, size: int, signed: bool, keeps: bool, quiet: bool) -> None:
    """Read an integer of ``size`` bytes, least significant first."""
    part = machine.pop_slice()
    found = None
    if part.has(size * 8):
        octets = part.peek(size * 8).to_bytes(size, "big")
        found = int.from_bytes(octets, "little", signed=signed), part.skip(size * 8)
    _leave(machine, part, found, keeps=keeps, quiet=quiet)


# Parts of slices


_PARTS: dict[str, Callable[[Slice, int, int], Slice]] = {
    "CUTFIRST": Slice.take,
    "SKIPFIRST": Slice.skip,
    "CUTLAST": lambda part, bits, refs: part.skip(part.bits - bits, part.ref_count - refs),
    "SKIPLAST": lambda part, bits, refs: part.take(part.bits - bits, part.ref_count - refs),
}


@step("S{refs}{apply}", refs={"D": False, "": True}, apply=_PARTS)
def _cut(machine: Machine, apply: Callable[[Slice, int, int], Slice], *, refs: bool) -> None:
    """Replace a slice by a part: a number of bits, and of references if ``refs``."""
    machine.need(3 if refs else 2)
    ref_count = machine.pop_range(_MAX_REFS) if refs else 0
    bits = machine.pop_range(_MAX_BITS)
    part = machine.pop_slice()
    if not part.has(bits, ref_count):
        raise VmError(Exit.CELL_UNDERFLOW)
    machine.stack.append(apply(part, bits, ref_count))


@step("SDSUBSTR")
def _substring(machine: Machine) -> None:
    machine.need(3)
    bits = machine.pop_range(_MAX_BITS)
    offset = machine.pop_range(_MAX_BITS)
    machine.stack.append(machine.pop_slice().skip(offset).take(bits))


@step("SUBSLICE")
def _subslice(machine: Machine) -> None:
    machine.need(5)
    refs, bits = machine.pop_range(_MAX_REFS), machine.pop_range(_MAX_BITS)
    ref_offset, offset = machine.pop_range(_MAX_REFS), machine.pop_range(_MAX_BITS)
    machine.stack.append(machine.pop_slice().skip(offset, ref_offset).take(bits, refs))


@step("SPLIT{quiet}", quiet=QUIET)
def _split(machine: Machine, *, quiet: bool) -> None:
    machine.need(3)
    refs, bits = machine.pop_range(_MAX_REFS), machine.pop_range(_MAX_BITS)
    part = machine.pop_slice()
    found = None
    if part.has(bits, refs):
        found = part.take(bits, refs), part.skip(bits, refs)
    _leave(machine, part, found, keeps=True, quiet=quiet)


def starts_with(part: Slice, prefix: Slice) -> bool:
    """Return whether the bits of a slice begin with those of another."""
    return part.has(prefix.bits) and part.peek(prefix.bits) == prefix.uint()


@with_operands("SDBEGINS{quiet}", quiet=QUIET)
def _begins(prefix: Slice, machine: Machine, *, quiet: bool) -> None:
    part = machine.pop_slice()
    found = (part.skip(prefix.bits),) if starts_with(part, prefix) else None
    machine.leave(found, quiet=quiet, kept=(part,))


@step("SDBEGINSX{quiet}", quiet=QUIET)
def _begins_variable(machine: Machine, *, quiet: bool) -> None:
    machine.need(2)
    _begins(machine.pop_slice(), machine, quiet=quiet)


# Special cells


@step("XCTOS")
def _open_special(machine: Machine) -> None:
    cell = machine.pop_cell()
    machine.charge_load(cell)
    machine.stack.append(cell.slice())
    machine.push_bool(cell.special)


@step("XLOAD{quiet}", quiet=QUIET)
def _load_special(machine: Machine, *, quiet: bool) -> None:
    """Resolve a library cell; leave an ordinary one, or any before version 5, as it is."""
    cell = machine.pop_cell()
    found: Cell | None = cell
    if machine.version >= _LIBRARIES_SINCE:
        machine.charge_load(cell)
        if cell.special:
            wanted = cell.library
            found = None if wanted is None else machine.libraries(wanted)
    machine.leave(None if found is None else (found,), quiet=quiet)


# Checks and measures


@step(
    "SCHK{counts}{quiet}",
    counts={"BITS": (True, False), "REFS": (False, True), "BITREFS": (True, True)},
    quiet=QUIET,
)
def _check(machine: Machine, *, counts: tuple[bool, bool], quiet: bool) -> None:
    bits, refs = counts
    machine.need(1 + bits + refs)
    ref_count = machine.pop_range(_MAX_REFS if bits else _MAX_BITS) if refs else 0
    bit_count = machine.pop_range(_MAX_BITS) if bits else 0
    fits = machine.pop_slice().has(bit_count, ref_count)
    if quiet:
        machine.push_bool(fits)
    elif not fits:
        raise VmError(Exit.CELL_UNDERFLOW)


@numbered("PLDREFIDX", "PLDREFVAR", 3)
def _peek_ref(machine: Machine, place: int) -> None:
    machine.stack.append(machine.pop_slice().child(place))


def _measure(name: str, apply: Callable[[Slice], int]) -> None:
    step(name)(lambda machine: machine.stack.append(apply(machine.pop_slice())))


def _compare(one: Slice, other: Slice) -> int:
    """Return -1, 0 or 1 for the order of the bits of two slices."""
    bits = min(one.bits, other.bits)
    first, second = (one.peek(bits), one.bits), (other.peek(bits), other.bits)
    return (first > second) - (first < second)


def _flip(part: Slice, bit: int) -> int:
    """Return the bits of a slice, inverted if those that equal 1 are wanted."""
    return part.uint() ^ ((1 << part.bits) - 1) * bit


def _count_leading(part: Slice, bit: int) -> int:
    return part.bits - _flip(part, bit).bit_length()


def _count_trailing(part: Slice, bit: int) -> int:
    value = _flip(part, bit)
    return (value & -value).bit_length() - 1 if value else part.bits


_measure("SBITS", lambda part: part.bits)
_measure("SREFS", lambda part: part.ref_count)
_measure("SEMPTY", lambda part: -(not part.bits and not part.ref_count))
_measure("SDEMPTY", lambda part: -(not part.bits))
_measure("SREMPTY", lambda part: -(not part.ref_count))
_measure("SDFIRST", lambda part: -(part.bits > 0 and part.peek(1)))
_measure("SDCNTLEAD0", lambda part: _count_leading(part, 0))
_measure("SDCNTLEAD1", lambda part: _count_leading(part, 1))
_measure("SDCNTTRAIL0", lambda part: _count_trailing(part, 0))
_measure("SDCNTTRAIL1", lambda part: _count_trailing(part, 1))
_measure("SDEPTH", lambda part: 1 + max((child.depth for child in part.refs), default=-1))


def _ends_with(part: Slice, suffix: Slice) -> bool:
    bits = suffix.bits
    return part.bits >= bits and part.uint() & (1 << bits) - 1 == suffix.uint()


_COMPARISONS: dict[str, Callable[[Slice, Slice], int]] = {
    "LEXCMP": _compare,
    "EQ": lambda one, other: -(one.bits == other.bits and one.uint() == other.uint()),
}


@step("SD{apply}", apply=_COMPARISONS)
def _compare_two(machine: Machine, apply: Callable[[Slice, Slice], int]) -> None:
    machine.need(2)
    other, one = machine.pop_slice(), machine.pop_slice()
    machine.stack.append(apply(one, other))


@step(
    "SD{proper}{contains}{reverse}",
    proper={"": False, "P": True},
    contains={"PFX": starts_with, "SFX": _ends_with},
    reverse={"": False, "REV": True},
)
def _contains(
    machine: Machine, contains: Callable[[Slice, Slice], bool], *, proper: bool, reverse: bool
) -> None:
    """Push whether the first slice begins or ends the second, or the other way round."""
    machine.need(2)
    whole, part = machine.pop_slice(), machine.pop_slice()
    if reverse:
        whole, part = part, whole
    machine.push_bool(contains(whole, part) and (not proper or whole.bits > part.bits))


@step("SBITREFS")
def _count_both(machine: Machine) -> None:
    part = machine.pop_slice()
    machine.stack += (part.bits, part.ref_count)


@step("LD{bit}", bit={"ZEROES": 0, "ONES": 1, "SAME": None})
def _load_same(machine: Machine, bit: int | None) -> None:
    """Read all leading bits that equal ``bit``; None: the bit is on the stack."""
    machine.need(1 if bit is not None else 2)
    found = machine.pop_range(1) if bit is None else bit
    part = machine.pop_slice()
    count = _count_leading(part, found)
    machine.stack += (count, part.skip(count))


@step("CDEPTH")
def _depth(machine: Machine) -> None:
    cell = machine.pop_maybe_cell()
    machine.stack.append(0 if cell is None else cell.depth)


step("CLEVEL")(lambda machine: machine.stack.append(machine.pop_cell().level))
step("CLEVELMASK")(lambda machine: machine.stack.append(machine.pop_cell().mask))


@numbered("CHASHI", "CHASHIX", 3, count=1)
def _hash_at(machine: Machine, level: int) -> None:
    machine.stack.append(int.from_bytes(machine.pop_cell().level_hash(level)[0], "big"))


@numbered("CDEPTHI", "CDEPTHIX", 3, count=1)
def _depth_at(machine: Machine, level: int) -> None:
    machine.stack.append(machine.pop_cell().level_hash(level)[1])

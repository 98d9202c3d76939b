"""Instructions that read cells and slices: ``crypto/vm/cellops.cpp``."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tonlake.ingest.derive.tvm.machine.cell import Cell, Slice
from tonlake.ingest.derive.tvm.machine.code import maker, numbered, step, with_operands
from tonlake.ingest.derive.tvm.machine.fault import CELL_UNDERFLOW, VmError
from tonlake.ingest.derive.tvm.machine.state import Machine, Step

_MAX_BITS, _MAX_REFS = 1023, 4
_INTEGER_BITS = 257
_LIBRARIES_SINCE = 5


maker("PUSHREF")(lambda cell: lambda machine: machine.stack.append(cell))
maker("PUSHREFSLICE")(lambda cell: lambda machine: machine.stack.append(machine.load(cell)))
maker("PUSHSLICE")(lambda part: lambda machine: machine.stack.append(part))
step("CTOS")(lambda machine: machine.stack.append(machine.load(machine.pop_cell())))


@step("ENDS")
def _check_end(machine: Machine) -> None:
    part = machine.pop_slice()
    if part.bits or part.ref_count:
        raise VmError(CELL_UNDERFLOW)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if bits and value >> bits - 1 else value


def _leave(
    machine: Machine, part: Slice, found: tuple[Any, ...] | None, *, keeps: bool, quiet: bool
) -> None:
    """Push what was read, and the rest of the slice that ``found`` ends in if it ``keeps`` it."""
    if keeps or found is None:
        machine.leave(found, quiet=quiet, kept=(part,) if keeps else ())
    else:
        machine.leave(found[:-1], quiet=quiet)


def _load_int(machine: Machine, bits: int, *, signed: bool, keeps: bool, quiet: bool) -> None:
    part = machine.pop_slice()
    found = None
    if part.has(bits):
        value = part.peek(bits)
        found = _signed(value, bits) if signed else value, part.skip(bits)
    _leave(machine, part, found, keeps=keeps, quiet=quiet)


def _load_slice(machine: Machine, bits: int, *, keeps: bool, quiet: bool) -> None:
    part = machine.pop_slice()
    found = None
    if part.has(bits):
        found = Slice(part.cell, part.start, part.start + bits, part.ref, part.ref), part.skip(bits)
    _leave(machine, part, found, keeps=keeps, quiet=quiet)


for _keeps in (True, False):
    for _quiet in (False, True):
        _start, _end = "P" * (not _keeps), "Q" * _quiet
        for _type, _load, _most in (
            ("I", partial(_load_int, signed=True), _INTEGER_BITS),
            ("U", partial(_load_int, signed=False), _INTEGER_BITS - 1),
            ("SLICE", _load_slice, _MAX_BITS),
        ):
            _name = f"{_start}LD{_type}"
            _form = partial(_load, keeps=_keeps, quiet=_quiet)
            numbered(_name + _end, f"{_name}X{_end}", _form, _most)


@maker("LDU")
def _load_fast(bits: int) -> Step:
    """Return LDU, which most contracts run most."""
    mask = (1 << bits) - 1

    def run(machine: Machine) -> None:
        stack = machine.stack
        part = stack[-1]
        if part.__class__ is Slice:
            start = part.start + bits
            if start <= part.end:
                cell = part.cell
                stack[-1] = cell.value >> cell.bits - start & mask
                stack.append(Slice(cell, start, part.end, part.ref, part.ref_end))
                return
        _load_int(machine, bits, signed=False, keeps=True, quiet=False)

    return run


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


def _read_little(machine: Machine, *, size: int, signed: bool, keeps: bool, quiet: bool) -> None:
    """Read an integer of ``size`` bytes, least significant first."""
    part = machine.pop_slice()
    found = None
    if part.has(size * 8):
        octets = part.peek(size * 8).to_bytes(size, "big")
        found = int.from_bytes(octets, "little", signed=signed), part.skip(size * 8)
    _leave(machine, part, found, keeps=keeps, quiet=quiet)


for _size in (4, 8):
    for _keeps in (True, False):
        for _quiet in (False, True):
            for _signed_form in (True, False):
                step(f"{'P' * (not _keeps)}LD{'UI'[_signed_form]}LE{_size}{'Q' * _quiet}")(
                    partial(
                        _read_little, size=_size, signed=_signed_form, keeps=_keeps, quiet=_quiet
                    )
                )


# Parts of slices


def _cut(machine: Machine, apply: Callable[..., Slice], *, refs: bool) -> None:
    """Replace a slice by a part: a number of bits, and of references if ``refs``."""
    machine.need(3 if refs else 2)
    ref_count = machine.pop_range(_MAX_REFS) if refs else 0
    bits = machine.pop_range(_MAX_BITS)
    part = machine.pop_slice()
    if not part.has(bits, ref_count):
        raise VmError(CELL_UNDERFLOW)
    machine.stack.append(apply(part, bits, ref_count))


def _first(part: Slice, bits: int, refs: int) -> Slice:
    return Slice(part.cell, part.start, part.start + bits, part.ref, part.ref + refs)


def _without_first(part: Slice, bits: int, refs: int) -> Slice:
    return Slice(part.cell, part.start + bits, part.end, part.ref + refs, part.ref_end)


def _last(part: Slice, bits: int, refs: int) -> Slice:
    return Slice(part.cell, part.end - bits, part.end, part.ref_end - refs, part.ref_end)


def _without_last(part: Slice, bits: int, refs: int) -> Slice:
    return Slice(part.cell, part.start, part.end - bits, part.ref, part.ref_end - refs)


for _name, _apply in (
    ("CUTFIRST", _first),
    ("SKIPFIRST", _without_first),
    ("CUTLAST", _last),
    ("SKIPLAST", _without_last),
):
    step(f"SD{_name}")(partial(_cut, apply=_apply, refs=False))
    step(f"S{_name}")(partial(_cut, apply=_apply, refs=True))


def data_only(part: Slice) -> Slice:
    """Return a slice without its references."""
    return Slice(part.cell, part.start, part.end, part.ref, part.ref)


@step("SDSUBSTR")
def _substring(machine: Machine) -> None:
    machine.need(3)
    bits = machine.pop_range(_MAX_BITS)
    offset = machine.pop_range(_MAX_BITS)
    machine.stack.append(data_only(machine.pop_slice().skip(offset).take(bits)))


@step("SUBSLICE")
def _subslice(machine: Machine) -> None:
    machine.need(5)
    refs, bits = machine.pop_range(_MAX_REFS), machine.pop_range(_MAX_BITS)
    ref_offset, offset = machine.pop_range(_MAX_REFS), machine.pop_range(_MAX_BITS)
    machine.stack.append(machine.pop_slice().skip(offset, ref_offset).take(bits, refs))


def _split(machine: Machine, *, quiet: bool) -> None:
    machine.need(3)
    refs, bits = machine.pop_range(_MAX_REFS), machine.pop_range(_MAX_BITS)
    part = machine.pop_slice()
    found = None
    if part.has(bits, refs):
        found = _first(part, bits, refs), _without_first(part, bits, refs)
    _leave(machine, part, found, keeps=True, quiet=quiet)


step("SPLIT")(partial(_split, quiet=False))
step("SPLITQ")(partial(_split, quiet=True))


def starts_with(part: Slice, prefix: Slice) -> bool:
    """Return whether the bits of a slice begin with those of another."""
    return part.has(prefix.bits) and part.peek(prefix.bits) == prefix.uint()


def _begins(machine: Machine, prefix: Slice, *, quiet: bool) -> None:
    part = machine.pop_slice()
    found = (part.skip(prefix.bits),) if starts_with(part, prefix) else None
    machine.leave(found, quiet=quiet, kept=(part,))


def _begins_variable(machine: Machine, *, quiet: bool) -> None:
    machine.need(2)
    _begins(machine, machine.pop_slice(), quiet=quiet)


step("SDBEGINSX")(partial(_begins_variable, quiet=False))
step("SDBEGINSXQ")(partial(_begins_variable, quiet=True))
maker("SDBEGINS")(lambda prefix: lambda machine: _begins(machine, prefix, quiet=False))
maker("SDBEGINSQ")(lambda prefix: lambda machine: _begins(machine, prefix, quiet=True))


# Special cells


@step("XCTOS")
def _open_special(machine: Machine) -> None:
    cell = machine.pop_cell()
    machine.charge_load(cell)
    machine.stack.append(cell.slice())
    machine.push_bool(cell.special)


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


step("XLOAD")(partial(_load_special, quiet=False))
step("XLOADQ")(partial(_load_special, quiet=True))


# Checks and measures


def _check(machine: Machine, *, bits: bool, refs: bool, quiet: bool) -> None:
    machine.need(1 + bits + refs)
    ref_count = machine.pop_range(_MAX_REFS if bits else _MAX_BITS) if refs else 0
    bit_count = machine.pop_range(_MAX_BITS) if bits else 0
    fits = machine.pop_slice().has(bit_count, ref_count)
    if quiet:
        machine.push_bool(fits)
    elif not fits:
        raise VmError(CELL_UNDERFLOW)


for _quiet in (False, True):
    for _name, _has in (
        ("BITS", (True, False)),
        ("REFS", (False, True)),
        ("BITREFS", (True, True)),
    ):
        step(f"SCHK{_name}{'Q' * _quiet}")(
            partial(_check, bits=_has[0], refs=_has[1], quiet=_quiet)
        )


def _peek_ref(machine: Machine, place: int) -> None:
    machine.stack.append(machine.pop_slice().child(place))


numbered("PLDREFIDX", "PLDREFVAR", _peek_ref, 3)


def _measure(name: str, apply: Callable[[Slice], int]) -> None:
    step(name)(lambda machine: machine.stack.append(apply(machine.pop_slice())))


def _compare(one: Slice, other: Slice) -> int:
    """Return -1, 0 or 1 for the order of the bits of two slices."""
    bits = min(one.bits, other.bits)
    first, second = (one.peek(bits), one.bits), (other.peek(bits), other.bits)
    return (first > second) - (first < second)


def _count_leading(part: Slice, bit: int) -> int:
    value = part.uint()
    if bit:
        value ^= (1 << part.bits) - 1
    return part.bits - value.bit_length()


def _count_trailing(part: Slice, bit: int) -> int:
    value = part.uint()
    if bit:
        value ^= (1 << part.bits) - 1
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


def _compare_two(name: str, apply: Callable[[Slice, Slice], int]) -> None:
    def run(machine: Machine) -> None:
        machine.need(2)
        other, one = machine.pop_slice(), machine.pop_slice()
        machine.stack.append(int(apply(one, other)))

    step(name)(run)


_compare_two("SDLEXCMP", _compare)
_compare_two("SDEQ", lambda one, other: -(one.bits == other.bits and one.uint() == other.uint()))
_compare_two("SDPFX", lambda one, other: -starts_with(other, one))
_compare_two("SDPFXREV", lambda one, other: -starts_with(one, other))
_compare_two("SDPPFX", lambda one, other: -(starts_with(other, one) and other.bits > one.bits))
_compare_two("SDPPFXREV", lambda one, other: -(starts_with(one, other) and one.bits > other.bits))
_compare_two("SDSFX", lambda one, other: -_ends_with(other, one))
_compare_two("SDSFXREV", lambda one, other: -_ends_with(one, other))
_compare_two("SDPSFX", lambda one, other: -(_ends_with(other, one) and other.bits > one.bits))
_compare_two("SDPSFXREV", lambda one, other: -(_ends_with(one, other) and one.bits > other.bits))


@step("SBITREFS")
def _count_both(machine: Machine) -> None:
    part = machine.pop_slice()
    machine.stack += (part.bits, part.ref_count)


def _load_same(machine: Machine, bit: int | None) -> None:
    """Read all leading bits that equal ``bit``; None: the bit is on the stack."""
    machine.need(1 if bit is not None else 2)
    found = machine.pop_range(1) if bit is None else bit
    part = machine.pop_slice()
    count = _count_leading(part, found)
    machine.stack += (count, part.skip(count))


step("LDZEROES")(partial(_load_same, bit=0))
step("LDONES")(partial(_load_same, bit=1))
step("LDSAME")(partial(_load_same, bit=None))


@step("CDEPTH")
def _depth(machine: Machine) -> None:
    cell = machine.pop_maybe_cell()
    machine.stack.append(0 if cell is None else cell.depth)


step("CLEVEL")(lambda machine: machine.stack.append(machine.pop_cell().level))
step("CLEVELMASK")(lambda machine: machine.stack.append(machine.pop_cell().mask))


def _hash_at(machine: Machine, level: int) -> None:
    machine.stack.append(int.from_bytes(machine.pop_cell().level_hash(level)[0], "big"))


def _depth_at(machine: Machine, level: int) -> None:
    machine.stack.append(machine.pop_cell().level_hash(level)[1])


numbered("CHASHI", "CHASHIX", _hash_at, 3, count=1)
numbered("CDEPTHI", "CDEPTHIX", _depth_at, 3, count=1)

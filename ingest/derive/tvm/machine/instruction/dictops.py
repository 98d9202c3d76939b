"""Instructions on dictionaries: ``crypto/vm/dictops.cpp``.

Names say the kind of key (a slice, I a signed or U an unsigned integer) and of value (a slice, REF
a reference, B a builder).
"""

from functools import partial

from tonlake.ingest.derive.tvm.machine import dictionary as tree
from tonlake.ingest.derive.tvm.machine.cell import Builder, Cell, Slice
from tonlake.ingest.derive.tvm.machine.code import KEEPS, QUIET, maker, step, with_code
from tonlake.ingest.derive.tvm.machine.continuation import Continuation, Ordinary
from tonlake.ingest.derive.tvm.machine.dictionary import Content
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.instruction.building import pop_builder, pop_ref, pop_slice
from tonlake.ingest.derive.tvm.machine.instruction.number import fits
from tonlake.ingest.derive.tvm.machine.state import Machine

_MAX_BITS = 1023
_KIND = {"": "", "I": "I", "U": "U"}
_MOST_BITS = {"": _MAX_BITS, "I": 257, "U": 256}
"""Most bits of a key, by its kind."""

_FORM = {"": "", "REF": "REF"}
_MODE = {mode.upper(): mode for mode in (tree.SET, tree.REPLACE, tree.ADD)}


def _pop_key(machine: Machine, kind: str, bits: int) -> int | None:
    """Pop a key; None for an integer that does not fit it."""
    if not kind:
        return machine.pop_slice().peek(bits)
    value = machine.pop_finite()
    return value & (1 << bits) - 1 if fits(value, bits, signed=kind == "I") else None


def _pop_dictionary(machine: Machine, most: int = _MAX_BITS) -> tuple[int, Cell | None]:
    """Pop the length of keys and the root."""
    bits = machine.pop_range(most)
    return bits, machine.pop_maybe_cell()


def _pop_key_and_value(machine: Machine, kind: str, bits: int, form: str) -> tuple[int, Content]:
    """Pop a key that must fit, then the value to set; ``form`` OPT allows null."""
    if kind:
        number = machine.pop_int()
        if not fits(number, bits, signed=kind == "I"):
            raise VmError(Exit.RANGE_CHECK)
        return number & (1 << bits) - 1, _pop_value(machine, form)  # type: ignore[operator]
    part = machine.pop_slice()
    value = _pop_value(machine, form)
    return part.peek(bits), value


def _read_ref(value: Slice) -> Cell:
    if value.bits or value.ref_count != 1:
        raise VmError(Exit.DICTIONARY_ERROR)
    return value.child()


def _show(value: Slice, form: str) -> Slice | Cell:
    return _read_ref(value) if form == "REF" else value


_POPS = {"REF": pop_ref, "B": pop_builder, "": pop_slice}


def _pop_value(machine: Machine, form: str) -> Content:
    """Pop a value; null, which OPT allows, has no content."""
    if form == "OPT":
        cell = machine.pop_maybe_cell()
        return 0, 0, () if cell is None else (cell,)
    return _POPS[form](machine)


def _show_key(machine: Machine, key: int, bits: int, kind: str) -> int | Slice:
    if not kind:
        return machine.finish(Builder(key, bits)).slice()
    return key - (1 << bits) if kind == "I" and bits and key >> bits - 1 else key


def _find(machine: Machine, kind: str) -> Slice | None:
    machine.need(3)
    bits, root = _pop_dictionary(machine)
    key = _pop_key(machine, kind, bits)
    return None if key is None else tree.find_value(machine, root, key, bits)


@step("DICT{kind}GET{form}", kind=_KIND, form=_FORM)
def _get(machine: Machine, kind: str, form: str) -> None:
    found = _find(machine, kind)
    machine.stack += (0,) if found is None else (_show(found, form), -1)


@step("DICT{kind}GETOPTREF", kind=_KIND)
def _get_optional(machine: Machine, kind: str) -> None:
    found = _find(machine, kind)
    machine.stack.append(None if found is None else _read_ref(found))


@step(
    "DICT{kind}{mode}{gets}{form}",
    kind=_KIND,
    mode=_MODE,
    gets={"": False, "GET": True},
    form={**_FORM, "B": "B"},
)
def _set(machine: Machine, kind: str, form: str, mode: str, *, gets: bool) -> None:
    machine.need(4)
    bits, root = _pop_dictionary(machine)
    key, value = _pop_key_and_value(machine, kind, bits, form)
    made, old, changed = tree.set_value(machine, root, key, bits, value, mode)
    machine.stack.append(made)
    if gets:
        if old is not None:
            machine.stack.append(_show(old, "REF" if form == "REF" else ""))
        machine.push_bool(old is None if mode == tree.ADD else old is not None)
    elif mode != tree.SET:
        machine.push_bool(changed)


@step("DICT{kind}DEL{form}", kind=_KIND, form={"": None, "GET": "", "GETREF": "REF"})
def _delete(machine: Machine, kind: str, form: str | None) -> None:
    """Delete a key; ``form`` is that of the value to leave, None for none."""
    machine.need(3)
    bits, root = _pop_dictionary(machine)
    key = _pop_key(machine, kind, bits)
    if key is None:
        raise VmError(Exit.RANGE_CHECK)
    made, old = tree.delete_value(machine, root, key, bits)
    machine.stack.append(made)
    if old is not None and form is not None:
        machine.stack.append(_show(old, form))
    machine.push_bool(old is not None)


@step("DICT{kind}SETGETOPTREF", kind=_KIND)
def _set_optional(machine: Machine, kind: str) -> None:
    machine.need(4)
    bits, root = _pop_dictionary(machine)
    key, value = _pop_key_and_value(machine, kind, bits, "OPT")
    if not value[2]:
        made, old = tree.delete_value(machine, root, key, bits)
    else:
        made, old, _ = tree.set_value(machine, root, key, bits, value, tree.SET)
    machine.stack += (made, None if old is None else _read_ref(old))


def _leave_pair(
    machine: Machine, found: tuple[int, Slice] | None, bits: int, kind: str, form: str
) -> None:
    if found is None:
        machine.stack.append(0)
        return
    key, value = found
    machine.stack += (_show(value, form), _show_key(machine, key, bits, kind), -1)


@step(
    "DICT{kind}{removes}{last}{form}",
    kind=_KIND,
    removes={"": False, "REM": True},
    last={"MIN": False, "MAX": True},
    form=_FORM,
)
def _get_extreme(machine: Machine, kind: str, form: str, *, last: bool, removes: bool) -> None:
    machine.need(2)
    bits, root = _pop_dictionary(machine, _MOST_BITS[kind])
    found = tree.find_extreme(machine, root, bits, last=last, signed=kind == "I")
    if removes:
        made = root
        if found is not None:
            made, _ = tree.delete_value(machine, root, found[0], bits)
        machine.stack.append(made)
    _leave_pair(machine, found, bits, kind, form)


@step(
    "DICT{kind}GET{up}{equal}",
    kind=_KIND,
    up={"NEXT": True, "PREV": False},
    equal={"": False, "EQ": True},
)
def _get_nearest(machine: Machine, kind: str, *, up: bool, equal: bool) -> None:
    machine.need(3)
    bits, root = _pop_dictionary(machine, _MOST_BITS[kind])
    signed = kind == "I"
    if kind:
        number = machine.pop_finite()
        if fits(number, bits, signed=signed):
            key = number & (1 << bits) - 1
        elif (number < 0) is up:  # beyond the near end: the first key in the wanted direction
            found = tree.find_extreme(machine, root, bits, last=not up, signed=signed)
            _leave_pair(machine, found, bits, kind, "")
            return
        else:
            machine.stack.append(0)
            return
    else:
        key = machine.pop_slice().peek(bits)
    found = tree.find_nearest(machine, root, key, bits, up=up, equal=equal, signed=signed)
    _leave_pair(machine, found, bits, kind, "")


@step("SUBDICT{kind}{remove}GET", kind=_KIND, remove={"": False, "RP": True})
def _cut(machine: Machine, kind: str, *, remove: bool) -> None:
    machine.need(4)
    bits, root = _pop_dictionary(machine)
    size = machine.pop_range(min(bits, _MOST_BITS[kind]))
    prefix = _pop_key(machine, kind, size)
    if prefix is None:
        raise VmError(Exit.CELL_UNDERFLOW)
    machine.stack.append(tree.cut_prefix(machine, root, prefix, size, bits, remove=remove))


# Dictionaries in slices and builders: HashmapE, a bit and a reference


@step("STDICT")
def _store(machine: Machine) -> None:
    machine.need(2)
    builder, root = machine.pop_builder(), machine.pop_maybe_cell()
    refs = () if root is None else (root,)
    machine.stack.append(builder.store(len(refs), 1, refs))


@step("{keeps}LDDICT{quiet}", keeps=KEEPS, quiet=QUIET, leaves={"": "root"})
@step("{keeps}LDDICTS", keeps=KEEPS, quiet={"": False}, leaves={"": "slice"})
@step("SKIPDICT", keeps={"": True}, quiet={"": False}, leaves={"": ""})
def _load(machine: Machine, *, keeps: bool, quiet: bool, leaves: str) -> None:
    """Read a dictionary; ``leaves`` it as a "root", a "slice", or not at all ("")."""
    part = machine.pop_slice()
    size = part.peek(1) if part.bits else None
    if size is None or size > part.ref_count:
        machine.leave(None, quiet=quiet, kept=(part,) if keeps else ())
        return
    found: tuple[Slice | Cell | None, ...] = ()
    if leaves == "root":
        found = (part.child() if size else None,)
    elif leaves:
        found = (part.take(1, size),)
    machine.leave((*found, part.skip(1, size)) if keeps else found, quiet=quiet)


# Code in dictionaries


@with_code(
    "DICT{kind}GET{calls}{pushes}",
    kind={"I": "I", "U": "U"},
    calls={"JMP": False, "EXEC": True},
    pushes={"": False, "Z": True},
)
def _find_code(
    code: Slice, machine: Machine, *, kind: str, calls: bool, pushes: bool
) -> Continuation | None:
    machine.need(3)
    bits, root = _pop_dictionary(machine)
    number = machine.stack[-1]
    key = _pop_key(machine, kind, bits)
    found = None if key is None else tree.find_value(machine, root, key, bits)
    if found is None:
        if pushes:
            machine.stack.append(number)
        return None
    target = Ordinary(found)
    return machine.call(target, code) if calls else machine.jump(target)


maker("DICTPUSHCONST")(lambda bits, root: lambda machine: machine.stack.extend((root, bits)))


# Prefix dictionaries


@step("PFXDICT{mode}", mode=_MODE)
def _set_prefix(machine: Machine, mode: str) -> None:
    machine.need_all(4)
    machine.need(3)
    bits, root = _pop_dictionary(machine)
    key, value = machine.pop_slice(), _pop_value(machine, "")
    made, changed = root, False
    if key.bits <= bits:
        made, _, changed = tree.set_value(machine, root, key.uint(), bits, value, mode, key.bits)
    machine.stack.append(made)
    machine.push_bool(changed)


@step("PFXDICTDEL")
def _delete_prefix(machine: Machine) -> None:
    machine.need_all(3)
    machine.need(2)
    bits, root = _pop_dictionary(machine)
    key = machine.pop_slice()
    made, old = root, None
    if key.bits <= bits:
        made, old = tree.delete_value(machine, root, key.uint(), bits, key.bits)
    machine.stack.append(made)
    machine.push_bool(old is not None)


def _split_by_prefix(
    machine: Machine, root: Cell | None, bits: int
) -> tuple[Slice, tuple[Slice, Slice, Slice] | None]:
    """Pop a slice; return it, and the prefix that is a key, its value and the rest, if any."""
    part = machine.pop_slice()
    found = tree.find_prefix(machine, root, part, bits)
    if found is None:
        return part, None
    value, size = found
    return part, (part.take(size), value, part.skip(size))


@step("PFXDICTGET{quiet}", quiet=QUIET)
def _get_prefix(machine: Machine, *, quiet: bool) -> None:
    machine.need(3)
    bits, root = _pop_dictionary(machine)
    part, found = _split_by_prefix(machine, root, bits)
    machine.leave(found, quiet=quiet, kept=(part,))


def _enter_prefix(
    machine: Machine, code: Slice | None, root: Cell | None, bits: int
) -> Continuation | None:
    """Run the code of a prefix: call it with ``code`` to return to, jump to it without."""
    part, found = _split_by_prefix(machine, root, bits)
    if found is None:
        if code is not None:
            raise VmError(Exit.CELL_UNDERFLOW)
        machine.stack.append(part)
        return None
    prefix, value, rest = found
    machine.stack += (prefix, rest)
    target = Ordinary(value)
    return machine.jump(target) if code is None else machine.call(target, code)


@with_code("PFXDICTGETEXEC")
def _call_prefix(code: Slice | None, machine: Machine) -> Continuation | None:
    machine.need(3)
    bits, root = _pop_dictionary(machine)
    return _enter_prefix(machine, code, root, bits)


step("PFXDICTGETJMP")(partial(_call_prefix, None))
maker("PFXDICTSWITCH")(lambda bits, root: lambda machine: _enter_prefix(machine, None, root, bits))

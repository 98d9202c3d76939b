"""Instructions on the stack and on tuples: ``crypto/vm/stackops.cpp`` and ``tupleops.cpp``.

The table names registers of PUXC and the like as Fift does: as they are before the pushes.
"""

from functools import partial
from operator import itemgetter
from types import NoneType
from typing import Any

from tonlake.ingest.derive.tvm.machine.code import OPCODES, WHEN, invalid, maker, numbered, step
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.state import MAX_TUPLE, Machine, Step, expect

_WIDE_SINCE = 4
"""Global version since which depths of the stack may exceed 255."""

_FREE_DEPTH = 255


step("NOP")(lambda _machine: None)


@maker("PUSH")
def _push(place: int) -> Step:
    index = -1 - place

    def run(machine: Machine) -> None:
        stack = machine.stack
        stack.append(stack[index])

    return run


@maker("POP")
def _pop(place: int) -> Step:
    index = -1 - place

    def run(machine: Machine) -> None:
        stack = machine.stack
        stack[index] = stack[-1]
        stack.pop()

    return run


@step("SWAP")
def _swap(machine: Machine) -> None:
    stack = machine.stack
    stack[-2], stack[-1] = stack[-1], stack[-2]


step("DUP")(lambda machine: machine.stack.append(machine.stack[-1]))
step("OVER")(lambda machine: machine.stack.append(machine.stack[-2]))


@step("DROP")
def _drop(machine: Machine) -> None:
    machine.stack.pop()


@step("NIP")
def _nip(machine: Machine) -> None:
    del machine.stack[-2]


def _arrange(*places: int) -> Step:
    """Replace as many values as the highest place says by those at the places, deepest first."""
    count, pick = 1 + max(places), itemgetter(*places)

    def run(machine: Machine) -> None:
        stack = machine.stack
        stack[-count:] = pick(stack[-count:])

    return run


step("ROT")(_arrange(1, 2, 0))
step("ROTREV")(_arrange(2, 0, 1))
step("TUCK")(_arrange(1, 0, 1))
step("2SWAP")(_arrange(2, 3, 0, 1))
step("2DUP")(_arrange(0, 1, 0, 1))
step("2OVER")(_arrange(0, 1, 2, 3, 0, 1))


@maker("XCHG")
def _exchange(one: int, other: int) -> Step:
    """Exchange two registers, which may be the same."""
    first, second = -1 - one, -1 - other

    def run(machine: Machine) -> None:
        stack = machine.stack
        stack[first], stack[second] = stack[second], stack[first]

    return run


_exchange_top = partial(_exchange, 0)
OPCODES[0x100000] = lambda i, j: _exchange(i, j) if 0 < i < j else invalid  # XCHG s(i), s(j)


def _chain(*steps: Step) -> Step:
    def run(machine: Machine) -> None:
        for each in steps:
            each(machine)

    return run


maker("XCHG3")(lambda x, y, z: _chain(_exchange(2, x), _exchange(1, y), _exchange_top(z)))
maker("XCHG2")(lambda x, y: _chain(_exchange(1, x), _exchange_top(y)))
maker("XCPU")(lambda x, y: _chain(_exchange_top(x), _push(y)))
maker("PUSH2")(lambda x, y: _chain(_push(x), _push(y + 1)))
maker("XC2PU")(lambda x, y, z: _chain(_exchange(1, x), _exchange_top(y), _push(z)))
maker("XCPU2")(lambda x, y, z: _chain(_exchange_top(x), _push(y), _push(z + 1)))
maker("PUSH3")(lambda x, y, z: _chain(_push(x), _push(y + 1), _push(z + 2)))
maker("PUXC")(lambda x, y: _chain(_push(x), _swap, _exchange_top(y + 1)))
maker("XCPUXC")(lambda x, y, z: _chain(_exchange(1, x), _push(y), _swap, _exchange_top(z + 1)))


maker("PUXC2")(
    lambda x, y, z: _chain(_push(x), _exchange(0, 2), _exchange(1, y + 1), _exchange_top(z + 1))
)
maker("PUXCPU")(lambda x, y, z: _chain(_push(x), _swap, _exchange_top(y + 1), _push(z + 1)))
maker("PU2XC")(lambda x, y, z: _chain(_push(x), _swap, _push(y + 1), _swap, _exchange_top(z + 2)))


def _swap_blocks(machine: Machine, below: int, above: int) -> None:
    machine.need(below + above)
    stack = machine.stack
    start = len(stack) - below - above
    stack[start:] = stack[start + below :] + stack[start : start + below]


maker("BLKSWAP")(lambda below, above: lambda machine: _swap_blocks(machine, below, above))


def _reverse_block(machine: Machine, count: int, place: int) -> None:
    machine.need(count + place)
    stack = machine.stack
    end = len(stack) - place
    stack[end - count : end] = stack[end - count : end][::-1]


maker("REVERSE")(lambda count, place: lambda machine: _reverse_block(machine, count, place))


def _drop_block(machine: Machine, count: int, kept: int = 0) -> None:
    machine.need(count + kept)
    stack = machine.stack
    end = len(stack) - kept
    del stack[end - count : end]


step("2DROP")(lambda machine: _drop_block(machine, 2))
maker("BLKDROP")(lambda count: lambda machine: _drop_block(machine, count))
maker("BLKDROP2")(lambda count, kept: lambda machine: _drop_block(machine, count, kept))
maker("BLKPUSH")(lambda count, place: _chain(*[_push(place)] * count))


def _pop_depth(machine: Machine) -> int:
    """Pop a number of values, or a place in the stack."""
    return machine.pop_range((1 << 30) - 1 if machine.version >= _WIDE_SINCE else 255)


def _charge_depth(machine: Machine, depth: int) -> None:
    if depth > _FREE_DEPTH and machine.version >= _WIDE_SINCE:
        machine.use(depth - _FREE_DEPTH)


@step("PICK")
def _pick(machine: Machine) -> None:
    place = _pop_depth(machine)
    machine.stack.append(machine.stack[-1 - place])


@step("ROLL")
def _roll(machine: Machine) -> None:
    place = _pop_depth(machine)
    machine.need(place + 1)
    _charge_depth(machine, place)
    machine.stack.append(machine.stack.pop(-1 - place))


@step("ROLLREV")
def _roll_back(machine: Machine) -> None:
    place = _pop_depth(machine)
    machine.need(place + 1)
    _charge_depth(machine, place)
    value = machine.stack.pop()
    machine.stack.insert(len(machine.stack) - place, value)


@step("BLKSWX")
def _swap_variable_blocks(machine: Machine) -> None:
    machine.need(2)
    above = _pop_depth(machine)
    below = _pop_depth(machine)
    machine.need(below + above)
    if below and above:
        _charge_depth(machine, below + above)
        _swap_blocks(machine, below, above)


@step("REVX")
def _reverse_variable(machine: Machine) -> None:
    machine.need(2)
    place = _pop_depth(machine)
    count = _pop_depth(machine)
    machine.need(count + place)
    _charge_depth(machine, count)
    _reverse_block(machine, count, place)


step("DROPX")(lambda machine: _drop_block(machine, _pop_depth(machine)))


@step("XCHGX")
def _exchange_variable(machine: Machine) -> None:
    place = _pop_depth(machine)
    stack = machine.stack
    stack[-1], stack[-1 - place] = stack[-1 - place], stack[-1]


step("DEPTH")(lambda machine: machine.stack.append(len(machine.stack)))
step("CHKDEPTH")(lambda machine: machine.need(_pop_depth(machine)))


@step("ONLYTOPX")
def _keep_top(machine: Machine) -> None:
    count = _pop_depth(machine)
    machine.need(count)
    dropped = len(machine.stack) - count
    if dropped > 0:
        _charge_depth(machine, count)
        del machine.stack[:dropped]


@step("ONLYX")
def _keep_bottom(machine: Machine) -> None:
    count = _pop_depth(machine)
    machine.need(count)
    del machine.stack[count:]


step("PUSHNULL")(lambda machine: machine.stack.append(None))
step("ISNULL")(lambda machine: machine.push_bool(machine.stack.pop() is None))


# Tuples: every new one costs a unit of gas for each value.


def _push_tuple(machine: Machine, values: tuple[Any, ...]) -> None:
    machine.use(len(values))
    machine.stack.append(values)


@numbered("TUPLE", "TUPLEVAR", 255, count=1)
def _make_tuple(machine: Machine, count: int) -> None:
    machine.need(count)
    stack = machine.stack
    start = len(stack) - count
    values = tuple(stack[start:])
    del stack[start:]
    _push_tuple(machine, values)


@numbered("INDEX", "INDEXVAR", 254)
def _index(machine: Machine, place: int) -> None:
    values = machine.pop_tuple()
    if place >= len(values):
        raise VmError(Exit.RANGE_CHECK)
    machine.stack.append(values[place])


@numbered("INDEXQ", "INDEXVARQ", 254)
def _index_quietly(machine: Machine, place: int) -> None:
    values = expect(machine.stack.pop(), tuple, NoneType) or ()
    machine.stack.append(values[place] if place < len(values) else None)


@numbered("SETINDEX", "SETINDEXVAR", 254, count=3)
def _set_index(machine: Machine, place: int) -> None:
    machine.need(2)
    value = machine.stack.pop()
    values = machine.pop_tuple()
    if place >= len(values):
        raise VmError(Exit.RANGE_CHECK)
    _push_tuple(machine, (*values[:place], value, *values[place + 1 :]))


def extend_tuple(values: tuple[Any, ...] | None, place: int, value: Any) -> tuple[Any, ...] | None:  # noqa: ANN401 - a stack value
    """Return a tuple with a value set, extended by nulls; a null beyond its end adds nothing."""
    old = () if values is None else values
    if place < len(old):
        return (*old[:place], value, *old[place + 1 :])
    if value is None:
        return values
    return (*old, *[None] * (place - len(old)), value)


@numbered("SETINDEXQ", "SETINDEXVARQ", 254, count=3)
def _set_index_quietly(machine: Machine, place: int) -> None:
    machine.need(2)
    value = machine.stack.pop()
    values = expect(machine.stack.pop(), tuple, NoneType)
    if place >= MAX_TUPLE:
        raise VmError(Exit.RANGE_CHECK)
    made = extend_tuple(values, place, value)
    if made is not None and made is not values:
        machine.use(len(made))
    machine.stack.append(made)


@numbered("UNTUPLE", "UNTUPLEVAR", 255)
def _open(machine: Machine, count: int) -> None:
    values = machine.pop_tuple(count, count)
    machine.use(count)
    machine.stack += values


@numbered("UNPACKFIRST", "UNPACKFIRSTVAR", 255)
def _open_first(machine: Machine, count: int) -> None:
    values = machine.pop_tuple(MAX_TUPLE, count)
    machine.use(count)
    machine.stack += values[:count]


@numbered("EXPLODE", "EXPLODEVAR", 255)
def _explode(machine: Machine, most: int) -> None:
    values = machine.pop_tuple(most)
    machine.use(len(values))
    machine.stack += values
    machine.stack.append(len(values))


step("TLEN")(lambda machine: machine.stack.append(len(machine.pop_tuple())))


@step("QTLEN")
def _count_values_quietly(machine: Machine) -> None:
    value = machine.stack.pop()
    machine.stack.append(len(value) if value.__class__ is tuple else -1)


step("ISTUPLE")(lambda machine: machine.push_bool(machine.stack.pop().__class__ is tuple))
step("LAST")(lambda machine: machine.stack.append(machine.pop_tuple(MAX_TUPLE, 1)[-1]))


@step("TPUSH")
def _append(machine: Machine) -> None:
    machine.need(2)
    value = machine.stack.pop()
    _push_tuple(machine, (*machine.pop_tuple(MAX_TUPLE - 1), value))


@step("TPOP")
def _split_last(machine: Machine) -> None:
    values = machine.pop_tuple(MAX_TUPLE, 1)
    _push_tuple(machine, values[:-1])
    machine.stack.append(values[-1])


@step("NULL{depth}{when}{count}", depth={"SWAP": 1, "ROTR": 2}, when=WHEN, count={"": 1, "2": 2})
def _push_nulls(machine: Machine, depth: int, count: int, *, when: bool) -> None:
    """Put nulls under ``depth`` values, decided by the top one."""
    machine.need(depth)
    flag = machine.pop_finite()
    machine.stack.append(flag)
    if bool(flag) is when:
        at = len(machine.stack) - depth
        machine.stack[at:at] = [None] * count


@maker("INDEX2", "INDEX3")
def _index_path(*places: int) -> Step:
    def run(machine: Machine) -> None:
        for place in places:
            _index(machine, place)

    return run

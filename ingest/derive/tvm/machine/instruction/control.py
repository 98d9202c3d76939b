"""Instructions that call, jump, loop and throw: ``crypto/vm/contops.cpp``.

A control step is given ``code``, what follows it in its cell.
"""

from functools import partial
from typing import Any

from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Cell, Slice
from tonlake.ingest.derive.tvm.machine.code import (
    WHEN,
    control,
    maker,
    numbered,
    step,
    with_code,
    with_operands,
)
from tonlake.ingest.derive.tvm.machine.continuation import (
    Again,
    Continuation,
    Ordinary,
    Repeat,
    StartChild,
    Stop,
    Until,
    While,
)
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.instruction.closure import save_alternative, take_top
from tonlake.ingest.derive.tvm.machine.state import INFINITE_GAS, Machine, Step

_MAX_ARGUMENTS = 254
_MAX_REPEATS = (1 << 31) - 1
_MAX_EXIT_CODE = 0xFFFF


def _open(machine: Machine, cell: Cell) -> Ordinary:
    """Load a cell as code."""
    return Ordinary(machine.load(cell))


@maker("PUSHCONT")
def _push(code: Slice) -> Step:
    found = Ordinary(code)
    return lambda machine: machine.stack.append(found)


maker("PUSHREFCONT")(lambda cell: lambda machine: machine.stack.append(_open(machine, cell)))


# Instructions that call, jump and return


control("EXECUTE")(lambda code: lambda machine: machine.call(machine.pop_continuation(), code))
step("JMPX")(lambda machine: machine.jump(machine.pop_continuation()))


@with_code("CALLXARGS")
def _call_with(code: Slice, passed: int, returned: int, machine: Machine) -> Continuation:
    return machine.call_with(machine.pop_continuation(), code, passed, returned)


def _pop_counts(machine: Machine) -> tuple[int, int]:
    """Pop the numbers of arguments and of results; a continuation must be below them."""
    machine.need(3)
    returned = machine.pop_range(_MAX_ARGUMENTS, -1)
    return machine.pop_range(_MAX_ARGUMENTS, -1), returned


with_code("CALLXVARARGS")(lambda code, machine: _call_with(code, *_pop_counts(machine), machine))


maker("JMPXARGS")(lambda passed: lambda machine: machine.jump(machine.pop_continuation(), passed))


@step("JMPXVARARGS")
def _jump_variable(machine: Machine) -> Continuation:
    machine.need(2)
    passed = machine.pop_range(_MAX_ARGUMENTS, -1)
    machine.need(passed + 1)
    return machine.jump(machine.pop_continuation(), passed)


maker("RETARGS")(lambda returned: lambda machine: machine.ret(returned))
step("RETVARARGS")(lambda machine: machine.ret(machine.pop_range(_MAX_ARGUMENTS, -1)))
step("RET")(lambda machine: machine.ret())
step("RETALT")(lambda machine: machine.ret_alternative())
step("RETBOOL")(lambda machine: machine.ret() if machine.pop_bool() else machine.ret_alternative())


@with_code("CALLCC")
def _call_with_current(code: Slice, machine: Machine) -> Continuation:
    target = machine.pop_continuation()
    machine.stack.append(machine.take_code(code, 3))
    return machine.jump(target)


@with_code("CALLCCARGS")
def _call_with_part(code: Slice, passed: int, returned: int, machine: Machine) -> Continuation:
    machine.need(passed + 1)
    target = machine.pop_continuation()
    current = machine.take_code(code, 3, passed, returned)
    machine.stack.append(current)
    return machine.jump(target)


with_code("CALLCCVARARGS")(
    lambda code, machine: _call_with_part(code, *_pop_counts(machine), machine)
)


@with_code("JMPXDATA", "JMPREFDATA")
def _jump_with_code(code: Slice, *cell_and_machine: Any) -> Continuation:  # noqa: ANN401
    """Jump, with the following code on the stack, to a popped continuation, or a cell."""
    *cells, machine = cell_and_machine
    target = _open(machine, *cells) if cells else machine.pop_continuation()
    machine.stack.append(code)
    following: Continuation = machine.jump(target)
    return following


@with_code("RETDATA")
def _return_code(code: Slice, machine: Machine) -> Continuation:
    machine.stack.append(code)
    return machine.ret()


control("CALLREF")(lambda code, cell: lambda machine: machine.call(_open(machine, cell), code))
maker("JMPREF")(lambda cell: lambda machine: machine.jump(_open(machine, cell)))


def _enter_method(machine: Machine, number: int, code: Slice | None = None) -> Continuation:
    """Enter c3 with the number of a method; return to ``code``, if it is given."""
    machine.stack.append(number)
    return machine.jump(machine.c[3]) if code is None else machine.call(machine.c[3], code)


control("CALLDICT")(lambda code, number: lambda machine: _enter_method(machine, number, code))
maker("JMPDICT")(lambda number: lambda machine: _enter_method(machine, number))
maker("PREPAREDICT")(lambda number: lambda machine: machine.stack.extend((number, machine.c[3])))


# Conditions


_JUMPS = {"": False, "JMP": True}


@with_code("{when}{jumps}", when=WHEN, jumps=_JUMPS)
def _enter_if(code: Slice, machine: Machine, *, when: bool, jumps: bool) -> Continuation | None:
    machine.need(2)
    target = machine.pop_continuation()
    if machine.pop_bool() is not when:
        return None
    return machine.jump(target) if jumps else machine.call(target, code)


@with_code("{when}{jumps}REF", when=WHEN, jumps=_JUMPS)
def _enter_ref_if(
    code: Slice, cell: Cell, machine: Machine, *, when: bool, jumps: bool
) -> Continuation | None:
    if machine.pop_bool() is not when:
        return None
    target = _open(machine, cell)
    return machine.jump(target) if jumps else machine.call(target, code)


@step("{when}RET{alternative}", when=WHEN, alternative={"": False, "ALT": True})
def _return_if(machine: Machine, *, when: bool, alternative: bool) -> Continuation | None:
    if machine.pop_bool() is not when:
        return None
    return machine.ret_alternative() if alternative else machine.ret()


@with_code("IFELSE")
def _if_else(code: Slice, machine: Machine) -> Continuation:
    machine.need(3)
    otherwise, then = machine.pop_continuation(), machine.pop_continuation()
    return machine.call(then if machine.pop_bool() else otherwise, code)


@with_code("{when}", when={"IFREFELSE": True, "IFELSEREF": False})
def _if_ref_else(code: Slice, cell: Cell, machine: Machine, *, when: bool) -> Continuation:
    machine.need(2)
    other = machine.pop_continuation()
    target = _open(machine, cell) if machine.pop_bool() is when else other
    return machine.call(target, code)


@with_code("IFREFELSEREF")
def _if_ref_else_ref(code: Slice, then: Cell, otherwise: Cell, machine: Machine) -> Continuation:
    return machine.call(_open(machine, then if machine.pop_bool() else otherwise), code)


def _kind(value: Any) -> object:  # noqa: ANN401 - a stack value
    """Return the type of a stack value; integers and NaN, and all continuations, share one."""
    if isinstance(value, Continuation):
        return Continuation
    return int if value.__class__.__name__ == "Nan" else value.__class__


@step("CONDSEL{checks}", checks={"": False, "CHK": True})
def _select(machine: Machine, *, checks: bool) -> None:
    machine.need(3)
    otherwise, then = machine.stack.pop(), machine.stack.pop()
    if checks and _kind(otherwise) is not _kind(then):
        raise VmError(Exit.TYPE_CHECK)
    machine.stack.append(then if machine.pop_bool() else otherwise)


_BIT = {"IFBIT": True, "IFNBIT": False}


@with_operands("{when}JMP", "{when}JMPREF", when=_BIT)
def _jump_if_bit(bit: int, *cell_and_machine: Any, when: bool) -> Continuation | None:  # noqa: ANN401
    """Jump by a bit of the integer on top, which stays: to a cell, or a popped continuation."""
    *cells, machine = cell_and_machine
    machine.need(2 - len(cells))
    target = None if cells else machine.pop_continuation()
    value = machine.pop_finite()
    machine.stack.append(value)
    if bool(value >> bit & 1) is not when:
        return None
    following: Continuation = machine.jump(target or _open(machine, *cells))
    return following


# Loops: the forms in -END loop over the rest of the code, those in -BRK set c1 to leave the loop.


_ENDS, _BREAKS = {"": False, "END": True}, {"": False, "BRK": True}


def _pop_count(machine: Machine) -> int:
    return machine.pop_range(_MAX_REPEATS, -_MAX_REPEATS - 1)


def _after(machine: Machine, code: Slice, *, ends: bool, breaks: bool) -> Continuation:
    """Return what follows a loop: c0 if the loop takes the rest of the code."""
    found: Continuation = machine.c[0] if ends else machine.take_code(code, 1)
    if breaks:  # it is the alternative return, too: ``c1_envelope``
        machine.c[1] = found = found.saving({0: machine.c[0], 1: machine.c[1]})
    return found


@with_code("REPEAT{ends}{breaks}", ends=_ENDS, breaks=_BREAKS)
def _repeat(code: Slice, machine: Machine, *, ends: bool, breaks: bool) -> Continuation | None:
    if ends:
        count = _pop_count(machine)
        if count <= 0:
            return machine.ret()
        body: Continuation = machine.take_code(code)
    else:
        machine.need(2)
        body = machine.pop_continuation()
        count = _pop_count(machine)
        if count <= 0:
            return None
    after = _after(machine, code, ends=ends, breaks=breaks)
    return machine.jump(Repeat(body, after, count))


@with_code("UNTIL{ends}{breaks}", ends=_ENDS, breaks=_BREAKS)
def _until(code: Slice, machine: Machine, *, ends: bool, breaks: bool) -> Continuation:
    body: Continuation = machine.take_code(code) if ends else machine.pop_continuation()
    after = _after(machine, code, ends=ends, breaks=breaks)
    if 0 not in body.save:
        machine.c[0] = Until(body, after)
    return machine.jump(body)


@with_code("WHILE{ends}{breaks}", ends=_ENDS, breaks=_BREAKS)
def _while(code: Slice, machine: Machine, *, ends: bool, breaks: bool) -> Continuation:
    machine.need(1 if ends else 2)
    body = None if ends else machine.pop_continuation()
    condition = machine.pop_continuation()
    if body is None:
        body = machine.take_code(code)
    after = _after(machine, code, ends=ends, breaks=breaks)
    if 0 not in condition.save:
        machine.c[0] = While(condition, body, after, checks=True)
    return machine.jump(condition)


@with_code("AGAIN{ends}{breaks}", ends=_ENDS, breaks=_BREAKS)
def _again(code: Slice, machine: Machine, *, ends: bool, breaks: bool) -> Continuation:
    if ends:
        if breaks:
            save_alternative(machine)
        return machine.jump(Again(machine.take_code(code)))
    body = machine.pop_continuation()
    if breaks:
        machine.c[1] = machine.take_code(code, 3)
    return machine.jump(Again(body))


# Exceptions


maker("THROW")(lambda code: lambda machine: machine.throw(code))
maker("THROWARG")(lambda code: lambda machine: machine.throw(code, machine.stack.pop()))


_ARGUMENT = {"": False, "ARG": True}


@with_operands("THROW{argument}{when}", argument=_ARGUMENT, when=WHEN)
def _throw(
    code: int | None, machine: Machine, *, when: bool | None, argument: bool
) -> Continuation | None:
    """Throw ``code``, None: the one on the stack, if a flag is as wanted."""
    machine.need(argument + (when is not None) + (code is None))
    flag = when if when is None else machine.pop_bool()
    code = machine.pop_range(_MAX_EXIT_CODE) if code is None else code
    value = machine.stack.pop() if argument else 0
    return machine.throw(code, value) if flag is when else None


step("THROW{argument}ANY{when}", argument=_ARGUMENT, when={**WHEN, "": None})(partial(_throw, None))


@control("TRY", "TRYARGS")
def _try(code: Slice, passed: int = -1, returned: int = -1) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(max(passed, 0) + 2)
        handler, target = machine.pop_continuation(), machine.pop_continuation()
        old = machine.c[2]
        current = machine.take_code(code, 7, passed, returned)
        machine.c[0], machine.c[2] = current, handler.saving({2: old, 0: current})
        return machine.jump(target)

    return run


# Codepages and debugging


@numbered("SETCP", "SETCPX", 0x7FFF, least=-0x8000, count=1)
def _set_codepage(_machine: Machine, number: int) -> None:
    if number:
        raise VmError(Exit.INVALID_OPCODE)


with_operands("DEBUG", "DUMP", "DEBUGSTR")(lambda *_operands: None)
step("DUMPSTK", "STRDUMP")(lambda _machine: None)


_RUN_GAS = 40
_NO_METHODS = 11

_SAME_C3, _PUSH_ZERO, _DATA, _GAS, _C7, _ACTIONS, _HARD_GAS, _ISOLATED, _COUNTED = (
    1 << bit for bit in range(9)
)
_MAX_RETURNED = 1 << 30


class _Child:
    """A machine that RUNVM starts, and what to take over from it."""

    def __init__(self, machine: Machine, code: Slice, flags: int) -> None:
        """Pop the operands and prepare the child; ``code`` follows in the parent."""
        if flags >> 9:
            raise VmError(Exit.RANGE_CHECK)
        machine.use(_RUN_GAS)
        self.code = code
        self.flags = flags
        hard = machine.pop_range(INFINITE_GAS) if flags & _HARD_GAS else INFINITE_GAS
        limit = machine.pop_range(INFINITE_GAS) if flags & _GAS else INFINITE_GAS
        hard = max(hard, limit) if flags & _HARD_GAS else limit
        c7 = machine.pop_tuple() if flags & _C7 else ()
        data = machine.pop_cell() if flags & _DATA else EMPTY_CELL
        self.count = machine.pop_range(_MAX_RETURNED) if flags & _COUNTED else -1
        program = machine.pop_slice()
        size = machine.pop_range(len(machine.stack) - 1)
        values = take_top(machine, size)
        machine.use_stack(size)
        self.child = child = Machine(
            program, data, values, c7, machine.decode,
            version=machine.version, gas_limit=min(limit, machine.gas), libraries=machine.libraries,
        )  # fmt: skip
        child.gas_max = min(hard, machine.gas)
        if not self.flags & _SAME_C3:
            child.c[3] = Stop(_NO_METHODS)
        elif self.flags & _PUSH_ZERO:
            child.stack.append(0)
        if not self.flags & _ISOLATED:
            child.loaded = machine.loaded
            child.free_signatures, child.free_extra = machine.free_signatures, machine.free_extra

    def resume(self, machine: Machine, code: int) -> Continuation:
        """Take over the results of the child."""
        child = self.child
        if not self.flags & _ISOLATED:
            machine.free_signatures, machine.free_extra = child.free_signatures, child.free_extra
        machine.use(min(child.gas_used, child.gas_limit + 1))
        values = child.stack
        if code not in (0, 1):
            values = values[-1:]
        elif 0 <= self.count < len(values):
            values = values[len(values) - self.count :]
        elif self.count > len(values):
            code, values = ~Exit.STACK_UNDERFLOW, [0]
        machine.stack = machine.stack + values
        machine.use_stack(len(values))
        machine.stack.append(code)
        data, actions = child.committed or (None, None)
        if self.flags & _DATA:
            machine.stack.append(data)
        if self.flags & _ACTIONS:
            machine.stack.append(actions)
        if self.flags & _GAS:
            machine.stack.append(child.gas_used)
        return Ordinary(self.code)


def _run_child(machine: Machine, code: Slice, flags: int) -> Continuation | None:
    started = _Child(machine, code, flags)
    raise StartChild(started.child, started.resume)


control("RUNVM")(lambda code, flags: lambda machine: _run_child(machine, code, flags))
control("RUNVMX")(lambda code: lambda machine: _run_child(machine, code, machine.pop_range(0xFFF)))

"""Instructions that call, jump, loop and throw, and those on continuations: ``contops.cpp``.

A control step is given ``code``, what follows it in its cell.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Cell, Slice
from tonlake.ingest.derive.tvm.machine.code import control, maker, step
from tonlake.ingest.derive.tvm.machine.continuation import (
    Again,
    Continuation,
    Data,
    Ordinary,
    PushInteger,
    Repeat,
    StartChild,
    Stop,
    Until,
    While,
)
from tonlake.ingest.derive.tvm.machine.fault import (
    INVALID_OPCODE,
    RANGE_CHECK,
    STACK_OVERFLOW,
    STACK_UNDERFLOW,
    TYPE_CHECK,
    VmError,
)
from tonlake.ingest.derive.tvm.machine.state import INFINITE_GAS

if TYPE_CHECKING:
    from tonlake.ingest.derive.tvm.machine.state import Machine, Step

_MAX_ARGUMENTS = 254
_MAX_COPIED = 255
_MAX_REPEATS = (1 << 31) - 1
_MAX_EXIT_CODE = 0xFFFF
_IMPOSSIBLE = 0x40000000
"""Number of arguments that makes a continuation fail when it runs."""

_RUN_GAS = 40
_NO_METHODS = 11

_FILLED_SINCE = 14
"""Global version since which saving into a filled slot does nothing instead of throwing."""


def _open(machine: Machine, cell: Cell) -> Ordinary:
    """Load a cell as code."""
    return Ordinary(machine.load(cell))


@maker("PUSHCONT")
def _push(code: Slice) -> Step:
    found = Ordinary(code)
    return lambda machine: machine.stack.append(found)


@maker("PUSHREFCONT")
def _push_ref(cell: Cell) -> Step:
    return lambda machine: machine.stack.append(_open(machine, cell))


# Instructions that call, jump and return


@control("EXECUTE")
def _execute(code: Slice) -> Step:
    return lambda machine: machine.call(machine.pop_continuation(), code)


@step("JMPX")
def _jump(machine: Machine) -> Continuation:
    return machine.jump(machine.pop_continuation())


@control("CALLXARGS")
def _call_with(code: Slice, passed: int, returned: int) -> Step:
    def run(machine: Machine) -> Continuation:
        if returned >= 0:
            machine.need(passed + 1)
        return _call(machine, code, passed, returned)

    return run


def _call(machine: Machine, code: Slice, passed: int, returned: int) -> Continuation:
    return machine.call_with(machine.pop_continuation(), code, passed, returned)


@control("CALLXVARARGS")
def _call_variable(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(3)
        returned = machine.pop_range(_MAX_ARGUMENTS, -1)
        passed = machine.pop_range(_MAX_ARGUMENTS, -1)
        return _call(machine, code, passed, returned)

    return run


@maker("JMPXARGS")
def _jump_with(passed: int) -> Step:
    return lambda machine: machine.jump(machine.pop_continuation(), passed)


@step("JMPXVARARGS")
def _jump_variable(machine: Machine) -> Continuation:
    machine.need(2)
    passed = machine.pop_range(_MAX_ARGUMENTS, -1)
    machine.need(passed + 1)
    return machine.jump(machine.pop_continuation(), passed)


@maker("RETARGS")
def _return_with(returned: int) -> Step:
    return lambda machine: machine.ret(returned)


@step("RETVARARGS")
def _return_variable(machine: Machine) -> Continuation:
    return machine.ret(machine.pop_range(_MAX_ARGUMENTS, -1))


@step("RET")
def _return(machine: Machine) -> Continuation:
    return machine.ret()


@step("RETALT")
def _return_alternative(machine: Machine) -> Continuation:
    return machine.ret_alternative()


@step("RETBOOL")
def _return_either(machine: Machine) -> Continuation:
    return machine.ret() if machine.pop_bool() else machine.ret_alternative()


@control("CALLCC")
def _call_with_current(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        target = machine.pop_continuation()
        machine.stack.append(machine.take_code(code, 3))
        return machine.jump(target)

    return run


def _call_with_part(machine: Machine, code: Slice, passed: int, returned: int) -> Continuation:
    target = machine.pop_continuation()
    current = machine.take_code(code, 3, passed, returned)
    machine.stack.append(current)
    return machine.jump(target)


@control("CALLCCARGS")
def _call_with_current_part(code: Slice, passed: int, returned: int) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(passed + 1)
        return _call_with_part(machine, code, passed, returned)

    return run


@control("CALLCCVARARGS")
def _call_with_current_variable(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(3)
        returned = machine.pop_range(_MAX_ARGUMENTS, -1)
        passed = machine.pop_range(_MAX_ARGUMENTS, -1)
        machine.need(passed + 1)
        return _call_with_part(machine, code, passed, returned)

    return run


@control("JMPXDATA")
def _jump_with_code(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        target = machine.pop_continuation()
        machine.stack.append(code)
        return machine.jump(target)

    return run


@control("RETDATA")
def _return_code(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.stack.append(code)
        return machine.ret()

    return run


@control("CALLREF")
def _call_ref(code: Slice, cell: Cell) -> Step:
    return lambda machine: machine.call(_open(machine, cell), code)


@maker("JMPREF")
def _jump_ref(cell: Cell) -> Step:
    return lambda machine: machine.jump(_open(machine, cell))


@control("JMPREFDATA")
def _jump_ref_with_code(code: Slice, cell: Cell) -> Step:
    def run(machine: Machine) -> Continuation:
        target = _open(machine, cell)
        machine.stack.append(code)
        return machine.jump(target)

    return run


def _register_methods() -> None:
    """Register instructions that enter c3 with the number of a method."""

    def call(code: Slice, number: int) -> Step:
        def run(machine: Machine) -> Continuation:
            machine.stack.append(number)
            return machine.call(machine.c[3], code)

        return run

    def jump(number: int) -> Step:
        def run(machine: Machine) -> Continuation:
            machine.stack.append(number)
            return machine.jump(machine.c[3])

        return run

    def prepare(number: int) -> Step:
        return lambda machine: machine.stack.extend((number, machine.c[3]))

    control("CALLDICT")(call)
    maker("JMPDICT")(jump)
    maker("PREPAREDICT")(prepare)


_register_methods()


# Conditions


def _register_conditions() -> None:  # noqa: C901 - one closure for each form
    for name, when in (("IF", True), ("IFNOT", False)):

        def call(code: Slice, when: bool = when) -> Step:  # noqa: FBT001
            def run(machine: Machine) -> Continuation | None:
                machine.need(2)
                target = machine.pop_continuation()
                return machine.call(target, code) if machine.pop_bool() is when else None

            return run

        def jump(machine: Machine, when: bool = when) -> Continuation | None:  # noqa: FBT001
            machine.need(2)
            target = machine.pop_continuation()
            return machine.jump(target) if machine.pop_bool() is when else None

        def ret(machine: Machine, when: bool = when) -> Continuation | None:  # noqa: FBT001
            return machine.ret() if machine.pop_bool() is when else None

        def ret_alternative(machine: Machine, when: bool = when) -> Continuation | None:  # noqa: FBT001
            return machine.ret_alternative() if machine.pop_bool() is when else None

        def call_ref(code: Slice, cell: Cell, when: bool = when) -> Step:  # noqa: FBT001
            def run(machine: Machine) -> Continuation | None:
                if machine.pop_bool() is not when:
                    return None
                return machine.call(_open(machine, cell), code)

            return run

        def jump_ref(cell: Cell, when: bool = when) -> Step:  # noqa: FBT001
            def run(machine: Machine) -> Continuation | None:
                return machine.jump(_open(machine, cell)) if machine.pop_bool() is when else None

            return run

        control(name)(call)
        step(f"{name}JMP")(jump)
        step(f"{name}RET")(ret)
        step(f"{name}RETALT")(ret_alternative)
        control(f"{name}REF")(call_ref)
        maker(f"{name}JMPREF")(jump_ref)


_register_conditions()


@control("IFELSE")
def _if_else(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(3)
        otherwise, then = machine.pop_continuation(), machine.pop_continuation()
        return machine.call(then if machine.pop_bool() else otherwise, code)

    return run


def _if_ref_else(code: Slice, cell: Cell, *, when: bool) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(2)
        other = machine.pop_continuation()
        target = _open(machine, cell) if machine.pop_bool() is when else other
        return machine.call(target, code)

    return run


control("IFREFELSE")(partial(_if_ref_else, when=True))
control("IFELSEREF")(partial(_if_ref_else, when=False))


@control("IFREFELSEREF")
def _if_ref_else_ref(code: Slice, then: Cell, otherwise: Cell) -> Step:
    def run(machine: Machine) -> Continuation:
        return machine.call(_open(machine, then if machine.pop_bool() else otherwise), code)

    return run


@step("CONDSEL")
def _select(machine: Machine) -> None:
    machine.need(3)
    otherwise, then = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(then if machine.pop_bool() else otherwise)


def _kind(value: Any) -> object:  # noqa: ANN401 - a stack value
    """Return the type of a stack value; integers and NaN, and all continuations, share one."""
    if isinstance(value, Continuation):
        return Continuation
    return int if value.__class__.__name__ == "Nan" else value.__class__


@step("CONDSELCHK")
def _select_checked(machine: Machine) -> None:
    machine.need(3)
    otherwise, then = machine.stack.pop(), machine.stack.pop()
    if _kind(otherwise) is not _kind(then):
        raise VmError(TYPE_CHECK)
    machine.stack.append(then if machine.pop_bool() else otherwise)


def _has_bit(machine: Machine, bit: int) -> bool:
    """Return a bit of the integer on top, which stays."""
    value = machine.pop_finite()
    machine.stack.append(value)
    return bool(value >> bit & 1)


def _jump_if_bit(bit: int, *, when: bool) -> Step:
    def run(machine: Machine) -> Continuation | None:
        machine.need(2)
        target = machine.pop_continuation()
        return machine.jump(target) if _has_bit(machine, bit) is when else None

    return run


def _jump_ref_if_bit(bit: int, cell: Cell, *, when: bool) -> Step:
    def run(machine: Machine) -> Continuation | None:
        return machine.jump(_open(machine, cell)) if _has_bit(machine, bit) is when else None

    return run


for _name, _when in (("IFBITJMP", True), ("IFNBITJMP", False)):
    maker(_name)(partial(_jump_if_bit, when=_when))
    maker(f"{_name}REF")(partial(_jump_ref_if_bit, when=_when))


# Loops: the forms in -END loop over the rest of the code, those in -BRK set c1 to leave the loop.


def _pop_count(machine: Machine) -> int:
    return machine.pop_range(_MAX_REPEATS, -_MAX_REPEATS - 1)


def _after(machine: Machine, code: Slice, *, ends: bool, breaks: bool) -> Continuation:
    """Return what follows a loop: c0 if the loop takes the rest of the code."""
    if not ends:
        found: Continuation = machine.take_code(code, 1)
    else:
        found = machine.c[0]
    if breaks:
        found = machine.with_break(found.with_data())
    return found


def _repeat(code: Slice, *, ends: bool, breaks: bool) -> Step:
    def run(machine: Machine) -> Continuation | None:
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

    return run


def _until(code: Slice, *, ends: bool, breaks: bool) -> Step:
    def run(machine: Machine) -> Continuation:
        body: Continuation = machine.take_code(code) if ends else machine.pop_continuation()
        after = _after(machine, code, ends=ends, breaks=breaks)
        if 0 not in body.save:
            machine.c[0] = Until(body, after)
        return machine.jump(body)

    return run


def _while(code: Slice, *, ends: bool, breaks: bool) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(1 if ends else 2)
        body = None if ends else machine.pop_continuation()
        condition = machine.pop_continuation()
        if body is None:
            body = machine.take_code(code)
        after = _after(machine, code, ends=ends, breaks=breaks)
        if 0 not in condition.save:
            machine.c[0] = While(condition, body, after, checks=True)
        return machine.jump(condition)

    return run


def _again(code: Slice, *, ends: bool, breaks: bool) -> Step:
    def run(machine: Machine) -> Continuation:
        if ends:
            if breaks:
                _save_alternative(machine)
            return machine.jump(Again(machine.take_code(code)))
        body = machine.pop_continuation()
        if breaks:
            machine.c[1] = machine.take_code(code, 3)
        return machine.jump(Again(body))

    return run


for _name, _loop in (("REPEAT", _repeat), ("UNTIL", _until), ("WHILE", _while), ("AGAIN", _again)):
    for _ends in (False, True):
        for _breaks in (False, True):
            control(_name + "END" * _ends + "BRK" * _breaks)(
                partial(_loop, ends=_ends, breaks=_breaks)
            )


# Stacks of continuations


def _copy_into(machine: Machine, target: Data, values: list[Any]) -> None:
    """Append values to the stack of a continuation."""
    if 0 <= target.nargs < len(values):
        raise VmError(STACK_OVERFLOW)
    target.stack = (target.stack or []) + values
    machine.use_stack(len(target.stack))
    if target.nargs >= 0:
        target.nargs -= len(values)


def _take_top(machine: Machine, count: int) -> list[Any]:
    stack = machine.stack
    at = len(stack) - count
    machine.stack = stack[:at]
    return stack[at:]


def _set_arguments(machine: Machine, copied: int, more: int) -> None:
    """Copy values into a continuation, and limit the number that it takes (-1: no limit)."""
    machine.need(copied + 1)
    target = machine.pop_continuation()
    if copied or more >= 0:
        target = target.with_data()
        if copied:
            _copy_into(machine, target, _take_top(machine, copied))
        if more >= 0:
            if target.nargs > more:
                target.nargs = _IMPOSSIBLE
            elif target.nargs < 0:
                target.nargs = more
    machine.stack.append(target)


@maker("SETCONTARGS")
def _set_fixed_arguments(copied: int, more: int) -> Step:
    return lambda machine: _set_arguments(machine, copied, more)


@step("SETCONTVARARGS")
def _set_variable_arguments(machine: Machine) -> None:
    machine.need(2)
    more = machine.pop_range(_MAX_COPIED, -1)
    _set_arguments(machine, machine.pop_range(_MAX_COPIED), more)


@step("SETNUMVARARGS")
def _set_argument_count(machine: Machine) -> None:
    machine.need(2)
    _set_arguments(machine, 0, machine.pop_range(_MAX_COPIED, -1))


def _return_arguments(machine: Machine, count: int) -> None:
    """Keep the top values; the others move into the stack of c0."""
    machine.need(count)
    if len(machine.stack) == count:
        return
    kept = _take_top(machine, count)
    target = machine.c[0].with_data()
    _copy_into(machine, target, machine.stack)
    machine.c[0] = target
    machine.stack = kept


@maker("RETURNARGS")
def _return_fixed_arguments(count: int) -> Step:
    return lambda machine: _return_arguments(machine, count)


@step("RETURNVARARGS")
def _return_variable_arguments(machine: Machine) -> None:
    _return_arguments(machine, machine.pop_range(_MAX_COPIED))


def _bless(machine: Machine, copied: int, more: int) -> None:
    """Make a continuation of a slice."""
    machine.need(copied + 1)
    code = machine.pop_slice()
    values = _take_top(machine, copied)
    machine.use_stack(copied)
    machine.stack.append(Ordinary(code, None, values, more))


@step("BLESS")
def _bless_plainly(machine: Machine) -> None:
    machine.stack.append(Ordinary(machine.pop_slice()))


@maker("BLESSARGS")
def _bless_fixed(copied: int, more: int) -> Step:
    return lambda machine: _bless(machine, copied, more)


@step("BLESSVARARGS")
def _bless_variable(machine: Machine) -> None:
    machine.need(2)
    more = machine.pop_range(_MAX_COPIED, -1)
    _bless(machine, machine.pop_range(_MAX_COPIED), more)


# Control registers


@maker("PUSHCTR")
def _push_register(number: int) -> Step:
    return lambda machine: machine.stack.append(machine.c[number])


@maker("POPCTR")
def _pop_register(number: int) -> Step:
    return lambda machine: _set_register(machine, number, machine.stack.pop())


def _set_register(machine: Machine, number: int, value: Any) -> None:  # noqa: ANN401
    machine.check_register(number, value)
    machine.c[number] = value


def _define(machine: Machine, target: Continuation, number: int, value: Any) -> Data:  # noqa: ANN401
    """Return a continuation that also saves a register."""
    made = target.with_data()
    machine.check_register(number, value)
    if number in made.save and machine.version < _FILLED_SINCE:
        raise VmError(TYPE_CHECK)
    made.define(number, value)
    return made


@maker("SETCONTCTR")
def _save_into(number: int) -> Step:
    def run(machine: Machine) -> None:
        machine.need(2)
        target, value = machine.pop_continuation(), machine.stack.pop()
        machine.stack.append(_define(machine, target, number, value))

    return run


def _save_into_register(number: int, *, place: int) -> Step:
    """Return SETRETCTR or SETALTCTR."""

    def run(machine: Machine) -> None:
        value = machine.stack.pop()
        machine.c[place] = _define(machine, machine.c[place], number, value)

    return run


maker("SETRETCTR")(partial(_save_into_register, place=0))
maker("SETALTCTR")(partial(_save_into_register, place=1))


@maker("POPSAVE")
def _pop_and_save(number: int) -> Step:
    def run(machine: Machine) -> None:
        value = machine.stack.pop()
        machine.check_register(number, value)
        target = machine.c[0].with_data()
        target.define(number, machine.c[number])
        machine.c[0] = target
        machine.c[number] = value

    return run


def _save(number: int, *, places: tuple[int, ...]) -> Step:
    """Return SAVECTR, SAVEALTCTR or SAVEBOTHCTR."""

    def run(machine: Machine) -> None:
        value = machine.c[number]
        made = [_define(machine, machine.c[place], number, value) for place in places]
        for place, target in zip(places, made, strict=True):
            machine.c[place] = target

    return run


maker("SAVECTR")(partial(_save, places=(0,)))
maker("SAVEALTCTR")(partial(_save, places=(1,)))
maker("SAVEBOTHCTR")(partial(_save, places=(0, 1)))


@step("PUSHCTRX")
def _push_register_variable(machine: Machine) -> None:
    machine.stack.append(machine.get_register(machine.pop_range(16)))


@step("POPCTRX")
def _pop_register_variable(machine: Machine) -> None:
    machine.need(2)
    number = machine.pop_range(16)
    machine.get_register(number)
    _set_register(machine, number, machine.stack.pop())


@step("SETCONTCTRX")
def _save_into_variable(machine: Machine) -> None:
    machine.need(3)
    number = machine.pop_range(16)
    machine.get_register(number)
    target, value = machine.pop_continuation(), machine.stack.pop()
    machine.stack.append(_define(machine, target, number, value))


def _save_many(machine: Machine, mask: int) -> None:
    target = machine.pop_continuation()
    if mask >> 6 & 1:
        raise VmError(RANGE_CHECK)
    for number in range(8):
        if mask >> number & 1:
            target = _define(machine, target, number, machine.c[number])
    machine.stack.append(target)


@maker("SETCONTCTRMANY")
def _save_fixed(mask: int) -> Step:
    return lambda machine: _save_many(machine, mask)


@step("SETCONTCTRMANYX")
def _save_variable(machine: Machine) -> None:
    machine.need(2)
    _save_many(machine, machine.pop_range(255))


def _compose(machine: Machine, numbers: tuple[int, ...]) -> None:
    machine.need(2)
    value, target = machine.pop_continuation(), machine.pop_continuation().with_data()
    for number in numbers:
        target.define(number, value)
    machine.stack.append(target)


step("BOOLAND")(partial(_compose, numbers=(0,)))
step("BOOLOR")(partial(_compose, numbers=(1,)))
step("COMPOSBOTH")(partial(_compose, numbers=(0, 1)))


@step("ATEXIT")
def _at_exit(machine: Machine) -> None:
    target = machine.pop_continuation().with_data()
    target.define(0, machine.c[0])
    machine.c[0] = target


@step("ATEXITALT")
def _at_alternative_exit(machine: Machine) -> None:
    target = machine.pop_continuation().with_data()
    target.define(1, machine.c[1])
    machine.c[1] = target


@step("SETEXITALT")
def _set_alternative_exit(machine: Machine) -> None:
    target = machine.pop_continuation().with_data()
    target.define(0, machine.c[0])
    target.define(1, machine.c[1])
    machine.c[1] = target


def _then_return(machine: Machine, place: int) -> None:
    target = machine.pop_continuation().with_data()
    target.define(0, machine.c[place])
    machine.stack.append(target)


step("THENRET")(partial(_then_return, place=0))
step("THENRETALT")(partial(_then_return, place=1))


@step("INVERT")
def _invert(machine: Machine) -> None:
    machine.c[0], machine.c[1] = machine.c[1], machine.c[0]


@control("BOOLEVAL")
def _evaluate(code: Slice) -> Step:
    def run(machine: Machine) -> Continuation:
        target = machine.pop_continuation()
        current = machine.take_code(code, 3)
        machine.c[0], machine.c[1] = PushInteger(-1, current), PushInteger(0, current)
        return machine.jump(target)

    return run


@step("SAMEALT")
def _same_alternative(machine: Machine) -> None:
    machine.c[1] = machine.c[0]


@step("SAMEALTSAVE")
def _save_alternative(machine: Machine) -> None:
    target = machine.c[0].with_data()
    target.define(1, machine.c[1])
    machine.c[0] = machine.c[1] = target


# Exceptions


@maker("THROW")
def _throw(code: int) -> Step:
    return lambda machine: machine.throw(code)


@maker("THROWARG")
def _throw_argument(code: int) -> Step:
    return lambda machine: machine.throw(code, machine.stack.pop())


def _throw_if(code: int, *, when: bool, argument: bool) -> Step:
    def run(machine: Machine) -> Continuation | None:
        machine.need(1 + argument)
        flag = machine.pop_bool()
        value = machine.stack.pop() if argument else 0
        return machine.throw(code, value) if flag is when else None

    return run


def _throw_any(machine: Machine, *, when: bool | None, argument: bool) -> Continuation | None:
    machine.need(1 + argument + (when is not None))
    flag = when if when is None else machine.pop_bool()
    code = machine.pop_range(_MAX_EXIT_CODE)
    value = machine.stack.pop() if argument else 0
    return machine.throw(code, value) if flag is when else None


for _argument in (False, True):
    for _suffix, _condition in (("IF", True), ("IFNOT", False)):
        maker(f"THROW{'ARG' * _argument}{_suffix}")(
            partial(_throw_if, when=_condition, argument=_argument)
        )
        step(f"THROW{'ARG' * _argument}ANY{_suffix}")(
            partial(_throw_any, when=_condition, argument=_argument)
        )
    step(f"THROW{'ARG' * _argument}ANY")(partial(_throw_any, when=None, argument=_argument))


@control("TRY", "TRYARGS")
def _try(code: Slice, passed: int = -1, returned: int = -1) -> Step:
    def run(machine: Machine) -> Continuation:
        machine.need(max(passed, 0) + 2)
        handler = machine.pop_continuation().with_data()
        target = machine.pop_continuation()
        old = machine.c[2]
        current = machine.take_code(code, 7, passed, returned)
        handler.define(2, old)
        handler.define(0, current)
        machine.c[0], machine.c[2] = current, handler
        return machine.jump(target)

    return run


# Machines within a machine

_SAME_C3, _PUSH_ZERO, _DATA, _GAS, _C7, _ACTIONS, _HARD_GAS, _ISOLATED, _COUNTED = (
    1 << bit for bit in range(9)
)
_MAX_STACK = (1 << 30) - 1


class _Child:
    """A machine that RUNVM starts, and what to take over from it."""

    def __init__(self, machine: Machine, code: Slice, flags: int) -> None:
        """Pop the operands and prepare the child; ``code`` follows in the parent."""
        if flags >> 9:
            raise VmError(RANGE_CHECK)
        machine.use(_RUN_GAS)
        self.code = code
        self.flags = flags
        hard = machine.pop_range(INFINITE_GAS) if flags & _HARD_GAS else INFINITE_GAS
        limit = machine.pop_range(INFINITE_GAS) if flags & _GAS else INFINITE_GAS
        hard = max(hard, limit) if flags & _HARD_GAS else limit
        c7 = machine.pop_tuple() if flags & _C7 else ()
        data = machine.pop_cell() if flags & _DATA else EMPTY_CELL
        self.count = machine.pop_range(_MAX_STACK) if flags & _COUNTED else -1
        program = machine.pop_slice()
        size = machine.pop_range(_MAX_STACK)
        machine.need(size)
        values = _take_top(machine, size)
        machine.use_stack(size)
        self.child = machine.spawn(program, data, values, c7, limit=limit, hard_limit=hard)
        self._set_flags(machine)

    def _set_flags(self, machine: Machine) -> None:
        child = self.child
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
        machine.reads_more = machine.reads_more or child.reads_more
        machine.use(min(child.gas_used, child.gas_limit + 1))
        values = child.stack
        if code not in (0, 1):
            values = values[-1:]
        elif 0 <= self.count < len(values):
            values = values[len(values) - self.count :]
        elif self.count > len(values):
            code, values = STACK_UNDERFLOW, [0]
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


# Codepages and debugging


@maker("SETCP")
def _set_codepage(number: int) -> Step:
    def run(_machine: Machine) -> None:
        if number:
            raise VmError(INVALID_OPCODE)

    return run


@step("SETCPX")
def _set_codepage_variable(machine: Machine) -> None:
    if machine.pop_range(0x7FFF, -0x8000):
        raise VmError(INVALID_OPCODE)


def _ignore(*_operands: Any) -> Step:  # noqa: ANN401 - operands of any kind
    return _pass


def _pass(_machine: Machine) -> None:
    pass


maker("DEBUG", "DUMP", "DEBUGSTR")(_ignore)
step("DUMPSTK", "STRDUMP")(_pass)

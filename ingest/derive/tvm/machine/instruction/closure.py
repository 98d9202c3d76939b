"""Instructions that give continuations values, registers and other continuations to run."""

from typing import Any

from tonlake.ingest.derive.tvm.machine.cell import Slice
from tonlake.ingest.derive.tvm.machine.code import maker, numbered, step, with_code, with_operands
from tonlake.ingest.derive.tvm.machine.continuation import Continuation, Data, Ordinary, PushInteger
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.state import Machine

_MAX_COPIED = 255
_IMPOSSIBLE = 0x40000000
"""Number of arguments that makes a continuation fail when it runs."""

_FILLED_SINCE = 14
"""Global version since which saving into a filled slot does nothing instead of throwing."""

_NEVER_FULL = 7
"""The register whose slot, when filled, stays as it is in every version."""


# Stacks of continuations


def _copy_into(machine: Machine, target: Data, values: list[Any]) -> None:
    """Append values to the stack of a continuation."""
    if 0 <= target.nargs < len(values):
        raise VmError(Exit.STACK_OVERFLOW)
    target.stack = (target.stack or []) + values
    machine.use_stack(len(target.stack))
    if target.nargs >= 0:
        target.nargs -= len(values)


def take_top(machine: Machine, count: int) -> list[Any]:
    """Take the top values off the stack."""
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
            _copy_into(machine, target, take_top(machine, copied))
        if more >= 0:
            if target.nargs > more:
                target.nargs = _IMPOSSIBLE
            elif target.nargs < 0:
                target.nargs = more
    machine.stack.append(target)


maker("SETCONTARGS")(lambda copied, more: lambda machine: _set_arguments(machine, copied, more))


@step("SET{copies}VARARGS", copies={"CONT": True, "NUM": False})
def _set_variable_arguments(machine: Machine, *, copies: bool) -> None:
    machine.need(2)
    more = machine.pop_range(_MAX_COPIED, -1)
    _set_arguments(machine, machine.pop_range(_MAX_COPIED) if copies else 0, more)


@numbered("RETURNARGS", "RETURNVARARGS", _MAX_COPIED, count=1)
def _return_arguments(machine: Machine, count: int) -> None:
    """Keep the top values; the others move into the stack of c0."""
    machine.need(count)
    if len(machine.stack) == count:
        return
    kept = take_top(machine, count)
    target = machine.c[0].with_data()
    _copy_into(machine, target, machine.stack)
    machine.c[0] = target
    machine.stack = kept


def _bless(machine: Machine, copied: int, more: int) -> None:
    """Make a continuation of a slice."""
    machine.need(copied + 1)
    code = machine.pop_slice()
    values = take_top(machine, copied)
    machine.use_stack(copied)
    machine.stack.append(Ordinary(code, None, values, more))


step("BLESS")(lambda machine: machine.stack.append(Ordinary(machine.pop_slice())))
maker("BLESSARGS")(lambda copied, more: lambda machine: _bless(machine, copied, more))


@step("BLESSVARARGS")
def _bless_variable(machine: Machine) -> None:
    machine.need(2)
    more = machine.pop_range(_MAX_COPIED, -1)
    _bless(machine, machine.pop_range(_MAX_COPIED), more)


# Control registers


maker("PUSHCTR")(lambda number: lambda machine: machine.stack.append(machine.get_register(number)))
maker("POPCTR")(lambda number: lambda machine: _set_register(machine, number, machine.stack.pop()))


def _set_register(machine: Machine, number: int, value: Any) -> None:  # noqa: ANN401
    machine.check_register(number, value)
    machine.c[number] = value


def _define(machine: Machine, target: Continuation, number: int, value: Any) -> Data:  # noqa: ANN401
    """Return a continuation that also saves a register."""
    machine.check_register(number, value)
    if number in target.save and number != _NEVER_FULL and machine.version < _FILLED_SINCE:
        raise VmError(Exit.TYPE_CHECK)
    return target.saving({number: value})


@with_operands("SETCONTCTR")
def _save_into(number: int, machine: Machine) -> None:
    machine.need(2)
    target, value = machine.pop_continuation(), machine.stack.pop()
    machine.stack.append(_define(machine, target, number, value))


@with_operands("SET{place}CTR", place={"RET": 0, "ALT": 1})
def _save_into_register(number: int, machine: Machine, *, place: int) -> None:
    value = machine.stack.pop()
    machine.c[place] = _define(machine, machine.c[place], number, value)


@with_operands("POPSAVE")
def _pop_and_save(number: int, machine: Machine) -> None:
    value = machine.stack.pop()
    machine.check_register(number, value)
    machine.c[0] = machine.c[0].saving({number: machine.c[number]})
    machine.c[number] = value


@with_operands("SAVE{place}CTR", place={"": 0, "ALT": 1})
def _save(number: int, machine: Machine, *, place: int) -> None:
    machine.c[place] = _define(machine, machine.c[place], number, machine.c[number])


@with_operands("SAVEBOTHCTR")
def _save_both(number: int, machine: Machine) -> None:
    """Return SAVEBOTHCTR, which leaves filled slots alone in every version."""
    saved = {number: machine.c[number]}
    machine.c[0], machine.c[1] = machine.c[0].saving(saved), machine.c[1].saving(saved)


step("PUSHCTRX")(lambda machine: machine.stack.append(machine.get_register(machine.pop_range(16))))


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
    _save_into(number, machine)


@numbered("SETCONTCTRMANY", "SETCONTCTRMANYX", 255)
def _save_many(machine: Machine, mask: int) -> None:
    if mask >> 6 & 1:
        raise VmError(Exit.RANGE_CHECK)
    target = machine.pop_continuation()
    for number in range(8):
        if mask >> number & 1:
            target = _define(machine, target, number, machine.c[number])
    machine.stack.append(target)


@step("{numbers}", numbers={"BOOLAND": (0,), "BOOLOR": (1,), "COMPOSBOTH": (0, 1)})
def _compose(machine: Machine, numbers: tuple[int, ...]) -> None:
    machine.need(2)
    value, target = machine.pop_continuation(), machine.pop_continuation()
    machine.stack.append(target.saving(dict.fromkeys(numbers, value)))


@step("{way}", way={"ATEXIT": (0, (0,)), "ATEXITALT": (1, (1,)), "SETEXITALT": (1, (0, 1))})
def _at_exit(machine: Machine, *, way: tuple[int, tuple[int, ...]]) -> None:
    """Make a continuation that saves registers the return c0 or c1."""
    place, saved = way
    target = machine.pop_continuation()
    machine.c[place] = target.saving({number: machine.c[number] for number in saved})


@step("THENRET{place}", place={"": 0, "ALT": 1})
def _then_return(machine: Machine, place: int) -> None:
    machine.stack.append(machine.pop_continuation().saving({0: machine.c[place]}))


@step("INVERT")
def _invert(machine: Machine) -> None:
    machine.c[0], machine.c[1] = machine.c[1], machine.c[0]


@with_code("BOOLEVAL")
def _evaluate(code: Slice, machine: Machine) -> Continuation:
    target = machine.pop_continuation()
    current = machine.take_code(code, 3)
    machine.c[0], machine.c[1] = PushInteger(-1, current), PushInteger(0, current)
    return machine.jump(target)


@step("SAMEALT")
def _same_alternative(machine: Machine) -> None:
    machine.c[1] = machine.c[0]


@step("SAMEALTSAVE")
def save_alternative(machine: Machine) -> None:
    """Make c0, which saves c1, the alternative return."""
    machine.c[0] = machine.c[1] = machine.c[0].saving({1: machine.c[1]})

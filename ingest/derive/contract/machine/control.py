"""Instructions that call, jump, repeat and throw, and those that read the environment of a run."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.machine.code import RETURN, Continuation
from tonlake.ingest.derive.contract.machine.number import push_value
from tonlake.ingest.derive.contract.machine.stack import Declined, Stack, Thrown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tonlake.ingest.derive.contract.machine.code import Code, Signal, Step

_GOOD_CODES = 1
_MAX_REPEATS = (1 << 31) - 1


def _take(stack: Stack) -> Continuation:
    value = stack.pop()
    if value.__class__ is not Continuation:
        raise Declined("expected a continuation")
    return value


def _execute(stack: Stack) -> Signal:
    return _take(stack)


def _jump(stack: Stack) -> Signal:
    return _take(stack).jump


def _return(_stack: Stack) -> Signal:
    return RETURN


def _if_return(*, when: bool) -> Step:
    def step(stack: Stack) -> Signal:
        return RETURN if bool(stack.integer()) is when else None

    return step


def _if(*, when: bool, jumps: bool = False) -> Step:
    """Return IF, IFNOT, IFJMP or IFNOTJMP."""

    def step(stack: Stack) -> Signal:
        target = _take(stack)
        if bool(stack.integer()) is not when:
            return None
        return target.jump if jumps else target

    return step


def _if_else(stack: Stack) -> Signal:
    otherwise, then = _take(stack), _take(stack)
    return then if stack.integer() else otherwise


def _select(stack: Stack) -> None:
    otherwise, then = stack.pop(), stack.pop()
    stack.append(then if stack.integer() else otherwise)


def _repeat(stack: Stack) -> Signal:
    body, count = _take(stack), stack.integer()
    if count > _MAX_REPEATS or count < -_MAX_REPEATS:
        raise Declined("count out of range")

    def call(_stack: Stack) -> Signal:
        return body

    return repeat(call, max(count, 0))


def _until(stack: Stack) -> Signal:
    body = _take(stack)

    def call(_stack: Stack) -> Signal:
        return body

    def loop() -> Iterator[Step]:
        yield call
        while not stack.integer():
            yield call

    return loop()


def _while(stack: Stack) -> Signal:
    body, condition = _take(stack), _take(stack)

    def call(_stack: Stack) -> Signal:
        return body

    def check(_stack: Stack) -> Signal:
        return condition

    def loop() -> Iterator[Step]:
        yield check
        while stack.integer():
            yield call
            yield check

    return loop()


def _throw(code: Code, bits: int) -> list[Step]:
    number = code.take(bits)

    def step(_stack: Stack) -> None:
        raise Declined("exit with a success code") if number <= _GOOD_CODES else Thrown(str(number))

    return [step]


def _throw_if(code: Code, bits: int, *, when: bool) -> list[Step]:
    (throw,) = _throw(code, bits)

    def step(stack: Stack) -> None:
        if bool(stack.integer()) is when:
            throw(stack)

    return [step]


def _call_ref(code: Code) -> list[Step]:
    target = code.open(code.take_ref())
    return [lambda _stack: target]


def _jump_ref(code: Code) -> list[Step]:
    target = code.open(code.take_ref()).jump
    return [lambda _stack: target]


def _if_ref(code: Code, *, when: bool, jumps: bool = False) -> list[Step]:
    target = code.open(code.take_ref())
    signal = target.jump if jumps else target

    def step(stack: Stack) -> Signal:
        return signal if bool(stack.integer()) is when else None

    return [step]


def _if_ref_else(code: Code, *, when: bool) -> list[Step]:
    """Decode IFREFELSE or IFELSEREF: one branch is a reference, the other on the stack."""
    target = code.open(code.take_ref())

    def step(stack: Stack) -> Signal:
        other = _take(stack)
        return target if bool(stack.integer()) is when else other

    return [step]


def _if_ref_else_ref(code: Code) -> list[Step]:
    then, otherwise = code.open(code.take_ref()), code.open(code.take_ref())

    def step(stack: Stack) -> Signal:
        return then if stack.integer() else otherwise

    return [step]


def _push_continuation(code: Code, bits: int, refs: int) -> list[Step]:
    return [push_value(Continuation(code.take_part(bits, refs)))]


def _call_method(code: Code, bits: int, *, jumps: bool = False) -> list[Step]:
    """Decode CALLDICT or JMPDICT, which enter the code from its start with a method id."""
    method = code.take(bits)
    target = code.root
    signal = target.jump if jumps else target

    def step(stack: Stack) -> Signal:
        stack.append(method)
        return signal

    return [step]


def _push_variable(number: int) -> Step:
    def step(stack: Stack) -> None:
        stack.append(stack.variables.get(number))

    return step


def _keep_variable(number: int) -> Step:
    def step(stack: Stack) -> None:
        stack.variables[number] = stack.pop()

    return step


def _push_data(stack: Stack) -> None:
    stack.append(stack.account.data)


def _push_address(stack: Stack) -> None:
    stack.append(stack.account.address.slice())


def _push_ref(code: Code) -> list[Step]:
    return [push_value(code.take_ref())]


def _push_ref_slice(code: Code) -> list[Step]:
    return [push_value(code.take_ref().slice())]


def _pass(_stack: Stack) -> None:
    pass


FIXED: dict[int, list[Step]] = {
    0xD8: [_execute],
    0xD9: [_jump],
    0xDB30: [_return],
    0xDC: [_if_return(when=True)],
    0xDD: [_if_return(when=False)],
    0xDE: [_if(when=True)],
    0xDF: [_if(when=False)],
    0xE0: [_if(when=True, jumps=True)],
    0xE1: [_if(when=False, jumps=True)],
    0xE2: [_if_else],
    0xE304: [_select],
    0xE4: [_repeat],
    0xE6: [_until],
    0xE8: [_while],
    0xED44: [_push_data],
    0xF828: [_push_address],
    **{0xF840 | number: [_push_variable(number)] for number in range(1, 32)},
    **{0xF860 | number: [_keep_variable(number)] for number in range(1, 32)},
    0xFF00: [_pass],
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "88": _push_ref,
    "89": _push_ref_slice,
    "8A": lambda code: [push_value(code.open(code.take_ref()))],
    "8F_": lambda code: _push_long_continuation(code, code.take(2)),
    **{
        f"9{size:X}": lambda code, size=size: _push_continuation(code, size * 8, 0)  # type: ignore[misc]
        for size in range(16)
    },
    "DB3C": _call_ref,
    "DB3D": _jump_ref,
    "E300": lambda code: _if_ref(code, when=True),
    "E301": lambda code: _if_ref(code, when=False),
    "E302": lambda code: _if_ref(code, when=True, jumps=True),
    "E303": lambda code: _if_ref(code, when=False, jumps=True),
    "E30D": lambda code: _if_ref_else(code, when=True),
    "E30E": lambda code: _if_ref_else(code, when=False),
    "E30F": _if_ref_else_ref,
    "F0": lambda code: _call_method(code, 8),
    "F12_": lambda code: _call_method(code, 14),
    "F16_": lambda code: _call_method(code, 14, jumps=True),
    "F22_": lambda code: _throw(code, 6),
    "F26_": lambda code: _throw_if(code, 6, when=True),
    "F2A_": lambda code: _throw_if(code, 6, when=False),
    "F2C4_": lambda code: _throw(code, 11),
    "F2CC_": lambda code: _throw(code, 11),
    "F2D4_": lambda code: _throw_if(code, 11, when=True),
    "F2E4_": lambda code: _throw_if(code, 11, when=False),
}
"""Decoders of instructions with operands, by prefix in the notation of the TVM."""


def _push_long_continuation(code: Code, refs: int) -> list[Step]:
    return _push_continuation(code, code.take(7) * 8, refs)

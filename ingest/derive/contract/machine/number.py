"""Instructions that push integers, calculate with them and compare them."""

from __future__ import annotations

from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, xor
from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.machine.stack import Declined, Thrown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step
    from tonlake.ingest.derive.contract.machine.stack import Stack

_MAX_BITS, _MAX_SHIFT = 1023, 256
_LONG_STEP, _LONG_LEAST = 8, 19


def push_value(value: object) -> Step:
    """Return a step that pushes a value."""

    def step(stack: Stack) -> None:
        stack.append(value)

    return step


def _push_long(code: Code) -> list[Step]:
    bits = code.take(5) * _LONG_STEP + _LONG_LEAST
    value = code.take_signed(bits)
    if not -(1 << 256) <= value < 1 << 256:
        raise Declined("constant of more than 257 bits")
    return [push_value(value)]


def _push_power(code: Code) -> list[Step]:
    exponent = code.take(8) + 1
    if exponent == 1 << 8:
        raise Declined("PUSHNAN")
    return [push_value(1 << exponent)]


def _unary(calculate: Callable[[int], int]) -> list[Step]:
    def step(stack: Stack) -> None:
        stack.push_integer(calculate(stack.integer()))

    return [step]


def _binary(calculate: Callable[[int, int], int]) -> list[Step]:
    def step(stack: Stack) -> None:
        second = stack.integer()
        stack.push_integer(calculate(stack.integer(), second))

    return [step]


def _compare(holds: Callable[[int, int], bool]) -> list[Step]:
    return _binary(lambda x, y: -1 if holds(x, y) else 0)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _shift(calculate: Callable[[int, int], int]) -> list[Step]:
    """Return a shift by the number of bits on the stack."""

    def step(stack: Stack) -> None:
        bits = stack.number(_MAX_BITS)
        stack.push_integer(calculate(stack.integer(), bits))

    return [step]


def _fits(code: Code, *, signed: bool) -> list[Step]:
    bits = code.take(8) + 1
    least, end = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)

    def step(stack: Stack) -> None:
        value = stack.integer()
        if not least <= value < end:
            raise Thrown("integer out of range")
        stack.append(value)

    return [step]


def _min_max(stack: Stack) -> None:
    second, first = stack.integer(), stack.integer()
    stack += (min(first, second), max(first, second))


_QUOTIENT, _REMAINDER = 1, 2
_ROUND: tuple[Callable[[int, int], int], ...] = (
    lambda x, y: x // y,
    lambda x, y: (2 * x + y) // (2 * y),
    lambda x, y: -(-x // y),
)
"""Division by rounding mode: down, to nearest (ties up), up."""


def _divide(code: Code) -> list[Step]:
    """Decode A9mscdf: division of ``x`` or, with m, ``x * y``, by an integer or a power of two."""
    multiplies, shifts, constant = code.take(1), code.take(2), code.take(1)
    parts, rounding = code.take(2), code.take(2)
    if shifts > 1 or not parts or rounding >= len(_ROUND) or (constant and not shifts):
        raise Declined("unknown instruction")
    bits = code.take(8) + 1 if constant else None
    divide = _ROUND[rounding]

    def take_divisor(stack: Stack) -> int:
        if not shifts:
            return stack.integer()
        return 1 << (stack.number(_MAX_SHIFT) if bits is None else bits)

    def step(stack: Stack) -> None:
        divisor = take_divisor(stack)
        factor = stack.integer() if multiplies else 1
        number = stack.integer() * factor
        if not divisor:
            raise Thrown("division by zero")
        quotient = divide(number, divisor)
        if parts & _QUOTIENT:
            stack.push_integer(quotient)
        if parts & _REMAINDER:
            stack.push_integer(number - quotient * divisor)

    return [step]


def _with_constant(make: Callable[[int, int], int]) -> Callable[[Code], list[Step]]:
    """Return the decoder of an instruction with a signed byte as its second operand."""

    def decode(code: Code) -> list[Step]:
        constant = code.take_signed(8)
        return _unary(lambda x: make(x, constant))

    return decode


def _compare_constant(holds: Callable[[int, int], bool]) -> Callable[[Code], list[Step]]:
    return _with_constant(lambda x, y: -1 if holds(x, y) else 0)


def _shift_constant(make: Callable[[int, int], int]) -> Callable[[Code], list[Step]]:
    def decode(code: Code) -> list[Step]:
        bits = code.take(8) + 1
        return _unary(lambda x: make(x, bits))

    return decode


FIXED: dict[int, list[Step]] = {
    **{0x70 | value: [push_value(value)] for value in range(11)},
    **{0x80 + value: [push_value(value)] for value in range(-5, 0)},
    0xA0: _binary(add),
    0xA1: _binary(sub),
    0xA2: _binary(lambda x, y: y - x),
    0xA3: _unary(lambda x: -x),
    0xA4: _unary(lambda x: x + 1),
    0xA5: _unary(lambda x: x - 1),
    0xA8: _binary(mul),
    0xAC: _shift(lambda x, bits: x << bits),
    0xAD: _shift(lambda x, bits: x >> bits),
    0xB0: _binary(and_),
    0xB1: _binary(or_),
    0xB2: _binary(xor),
    0xB3: _unary(lambda x: ~x),
    0xB608: _binary(min),
    0xB609: _binary(max),
    0xB60A: [_min_max],
    0xB60B: _unary(abs),
    0xB8: _unary(_sign),
    0xB9: _compare(lt),
    0xBA: _compare(eq),
    0xBB: _compare(le),
    0xBC: _compare(gt),
    0xBD: _compare(ne),
    0xBE: _compare(ge),
    0xBF: _binary(lambda x, y: _sign(x - y)),
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "80": lambda code: [push_value(code.take_signed(8))],
    "81": lambda code: [push_value(code.take_signed(16))],
    "82": _push_long,
    "83": _push_power,
    "84": lambda code: [push_value((1 << code.take(8) + 1) - 1)],
    "85": lambda code: [push_value(-(1 << code.take(8) + 1))],
    "A6": _with_constant(add),
    "A7": _with_constant(mul),
    "A9": _divide,
    "AA": _shift_constant(lambda x, bits: x << bits),
    "AB": _shift_constant(lambda x, bits: x >> bits),
    "B4": lambda code: _fits(code, signed=True),
    "B5": lambda code: _fits(code, signed=False),
    "C0": _compare_constant(eq),
    "C1": _compare_constant(lt),
    "C2": _compare_constant(gt),
    "C3": _compare_constant(ne),
}
"""Decoders of instructions with operands, by prefix in the notation of the TVM."""

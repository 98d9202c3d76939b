"""Arithmetic, logic and comparisons of integers: ``crypto/vm/arithops.cpp``.

Integers have 257 bits. Quiet instructions leave NaN where others throw an integer overflow.
"""

from collections.abc import Callable
from functools import partial

from tonlake.ingest.derive.tvm.machine.code import (
    OPCODES,
    QUIET,
    load_instructions,
    maker,
    numbered,
    step,
    with_operands,
)
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.state import INTEGER_LIMIT, NAN, Machine, Nan, Step

Number = int | Nan

_STRICT_SINCE = 13
"""Global version since which a shift out of range is NaN for quiet instructions."""

_MAX_SHIFT = 256
_MAX_BITS = 1023


@maker("PUSHINT")
def _push(number: int) -> Step:
    """Return PUSHINT, whose longest form has up to 267 bits."""
    if -INTEGER_LIMIT <= number < INTEGER_LIMIT:
        return lambda machine: machine.stack.append(number)
    return _push_number(number)


maker("PUSHPOW2")(lambda power: _push_number(1 << power))


def _push_number(number: int) -> Step:
    return lambda machine: machine.push_int(number)


maker("PUSHPOW2DEC")(lambda power: _push_number((1 << power) - 1))
maker("PUSHNEGPOW2")(lambda power: _push_number(-1 << power))
step("PUSHNAN")(lambda machine: machine.stack.append(NAN))


def _leave(machine: Machine, value: Number, *, quiet: bool) -> None:
    """Push a result: NaN, if it does not fit; raise VmError instead unless ``quiet``."""
    if value is NAN or not -INTEGER_LIMIT <= value < INTEGER_LIMIT:  # type: ignore[operator]
        if not quiet:
            raise VmError(Exit.INTEGER_OVERFLOW)
        value = NAN
    machine.stack.append(value)


def _binary(name: str, apply: Callable[[int, int], int], absorbing: int | None = None) -> None:
    """Register an instruction on two integers, and its quiet form.

    Before version 13 the ``absorbing`` number is the result even if the other one is NaN.
    """

    @step("{quiet}" + name, quiet=QUIET)
    def run(machine: Machine, *, quiet: bool) -> None:
        machine.need(2)
        other, one = machine.pop_int(), machine.pop_int()
        value: Number = NAN
        if one is not NAN and other is not NAN:
            value = apply(one, other)  # type: ignore[arg-type]
        elif absorbing in (one, other) and machine.version < _STRICT_SINCE:
            value = absorbing
        _leave(machine, value, quiet=quiet)


def _unary(name: str, apply: Callable[[int], int]) -> None:
    """Register an instruction on an integer, and its quiet form."""

    def run(machine: Machine, *, quiet: bool) -> None:
        value = machine.pop_int()
        _leave(machine, NAN if value is NAN else apply(value), quiet=quiet)  # type: ignore[arg-type]

    step("{quiet}" + name, quiet=QUIET)(run)


def _with_constant(name: str, apply: Callable[[int, int], int]) -> None:
    """Register an instruction on an integer and a constant in the code, and its quiet form."""

    @maker("{quiet}" + name, quiet=QUIET)
    def make(number: int, *, quiet: bool) -> Step:
        def run(machine: Machine) -> None:
            value = machine.pop_int()
            made = NAN if value is NAN else apply(value, number)  # type: ignore[arg-type]
            _leave(machine, made, quiet=quiet)

        return run


_binary("ADD", lambda x, y: x + y)
_binary("SUB", lambda x, y: x - y)
_binary("SUBR", lambda x, y: y - x)
_binary("MUL", lambda x, y: x * y)
_binary("AND", lambda x, y: x & y, 0)
_binary("OR", lambda x, y: x | y, -1)
_binary("XOR", lambda x, y: x ^ y)
_binary("MIN", min)
_binary("MAX", max)
_binary("LESS", lambda x, y: -(x < y))
_binary("EQUAL", lambda x, y: -(x == y))
_binary("LEQ", lambda x, y: -(x <= y))
_binary("GREATER", lambda x, y: -(x > y))
_binary("NEQ", lambda x, y: -(x != y))
_binary("GEQ", lambda x, y: -(x >= y))
_binary("CMP", lambda x, y: (x > y) - (x < y))
_unary("NEGATE", lambda x: -x)
_unary("INC", lambda x: x + 1)
_unary("DEC", lambda x: x - 1)
_unary("NOT", lambda x: ~x)
_unary("ABS", abs)
_unary("SGN", lambda x: (x > 0) - (x < 0))
_with_constant("ADDINT", lambda x, y: x + y)
_with_constant("MULINT", lambda x, y: x * y)
_with_constant("EQINT", lambda x, y: -(x == y))
_with_constant("LESSINT", lambda x, y: -(x < y))
_with_constant("GTINT", lambda x, y: -(x > y))
_with_constant("NEQINT", lambda x, y: -(x != y))


@step("{quiet}MINMAX", quiet=QUIET)
def _order(machine: Machine, *, quiet: bool) -> None:
    machine.need(2)
    other, one = machine.pop_int(), machine.pop_int()
    if one is NAN or other is NAN:
        one = other = NAN
    elif one > other:  # type: ignore[operator]
        one, other = other, one
    _leave(machine, one, quiet=quiet)
    _leave(machine, other, quiet=quiet)


step("ISNAN")(lambda machine: machine.push_bool(machine.pop_int() is NAN))
step("CHKNAN")(lambda machine: machine.stack.append(machine.pop_finite()))


# Divisions and shifts


def _round(numerator: int, denominator: int, mode: int) -> int:
    """Return a quotient rounded down, to the nearest (a half up), or up."""
    if mode == 0:
        return numerator // denominator
    if mode == 1:
        return (2 * numerator + denominator) // (2 * denominator)
    return -(-numerator // denominator)


def _pop_shift(machine: Machine, most: int, *, quiet: bool, since: int) -> Number:
    """Pop a number of bits; NaN if a quiet instruction meets one out of range."""
    if quiet and machine.version >= since:
        value = machine.pop_int()
        return value if value is not NAN and 0 <= value <= most else NAN  # type: ignore[operator]
    return machine.pop_range(most)


class Division:
    """An instruction of the families A9 and B7A9, from the byte of its kind.

    Bits 0 and 1 are the rounding, 2 and 3 what is left (quotient, remainder; neither: both, with a
    number added before). Bit 4: the shift is in the code. Bits 5 to 7: DIV, RSHIFT, MUL and DIV,
    MUL and RSHIFT, LSHIFT and DIV.
    """

    __slots__ = ("adds", "keeps", "kind", "mode", "quiet", "shift")

    def __init__(self, kind: int, shift: int | None = None, *, quiet: bool) -> None:
        """Take the byte of the kind; ``shift`` is that in the code, if any."""
        self.mode = kind & 3
        self.adds = not kind >> 2 & 3
        self.keeps = kind >> 2 & 3 or 3
        self.kind = kind >> 5
        self.shift = shift
        self.quiet = quiet

    def __call__(self, machine: Machine) -> None:
        """Run the instruction."""
        multiplies, shifts_left = self.kind in (4, 5), self.kind == 6  # noqa: PLR2004
        shifts_right = self.kind in (1, 5)
        takes_shift = self.shift is None and (shifts_right or shifts_left)
        machine.need(1 + (not shifts_right) + takes_shift + self.adds + multiplies)
        shift: Number = self.shift or 0
        since = _STRICT_SINCE + (self.kind == 1)
        if takes_shift:
            shift = _pop_shift(machine, _MAX_SHIFT, quiet=self.quiet, since=since)
        divisor: Number = 1 if shifts_right else machine.pop_int()
        added = machine.pop_int() if self.adds else 0
        factor = machine.pop_int() if multiplies else 1
        value = machine.pop_int()
        lenient = machine.version < since
        if lenient and shifts_left and value is NAN:
            value = _shift_nan(shift, None)  # type: ignore[arg-type]
        if NAN in (shift, divisor, added, factor, value) or divisor == 0:
            shifts_nan = lenient and shifts_right
            self._leave(machine, _shift_nan(shift, self.mode) if shifts_nan else NAN, NAN)  # type: ignore[arg-type]
            return
        if shifts_right:
            divisor = 1 << shift  # type: ignore[operator]
        total = value * factor + added if not shifts_left else (value << shift) + added  # type: ignore[operator]
        quotient = _round(total, divisor, self.mode)  # type: ignore[arg-type]
        self._leave(machine, quotient, total - quotient * divisor)  # type: ignore[operator]

    def _leave(self, machine: Machine, quotient: Number, rest: Number) -> None:
        if self.keeps & 1:
            _leave(machine, quotient, quiet=self.quiet)
        if self.keeps & 2:
            _leave(machine, rest, quiet=self.quiet)


_PREFIX, _QUIET_PREFIX = 0xA9, 0xB7A9


def _register_divisions() -> None:
    for row in load_instructions()[1]:
        quiet = row.first >> 8 == _QUIET_PREFIX
        if quiet or row.first >> 16 == _PREFIX:
            kind = row.first & 0xFF if quiet else row.first >> 8 & 0xFF
            OPCODES[row.first] = partial(Division, kind, quiet=quiet)


_register_divisions()


_WORD_BITS, _MOST_WORDS, _SPARE_BITS = 52, 5, 12
"""Width and number of the words of the node's big integers, and the bits that a word has more."""


def _shift_nan(bits: int, mode: int | None) -> Number:
    """Return what the node's big integers made of NaN before versions 13 and 14.

    A shift to the left (``mode`` None) by whole words filled in zeros; one to the right by more
    than the spare bits left -1 if rounded down, else 0.
    """
    if mode is None:
        return 0 if 1 <= bits // _WORD_BITS <= _MOST_WORDS else NAN
    return NAN if not bits else -(mode == 0 and bits > _SPARE_BITS)


def _shift(
    machine: Machine, bits: Number, *, left: bool, quiet: bool, since: int = _STRICT_SINCE + 1
) -> None:
    """Shift an integer; ``since`` is the version since which NaN stays NaN."""
    value = machine.pop_int()
    if bits is NAN or (value is NAN and machine.version >= since):
        _leave(machine, NAN, quiet=quiet)
    elif value is NAN:
        _leave(machine, _shift_nan(bits, None if left else 0), quiet=quiet)  # type: ignore[arg-type]
    elif left and bits >= _MOST_WORDS * _WORD_BITS:  # type: ignore[operator]
        _leave(machine, NAN, quiet=quiet)  # zero, too: it would take more words
    else:
        made = value << bits if left else value >> bits  # type: ignore[operator]
        _leave(machine, made, quiet=quiet)


_LEFT = {"L": True, "R": False}


@with_operands("{quiet}{left}SHIFT", quiet=QUIET, left=_LEFT)
def _shift_by(bits: int, machine: Machine, *, left: bool, quiet: bool) -> None:
    _shift(machine, bits, left=left, quiet=quiet)


@step("{quiet}{left}SHIFT", quiet=QUIET, left=_LEFT)
def _shift_variable(machine: Machine, *, left: bool, quiet: bool) -> None:
    machine.need(2)
    bits = _pop_shift(machine, _MAX_BITS, quiet=quiet, since=_STRICT_SINCE)
    _shift(machine, bits, left=left, quiet=quiet, since=_STRICT_SINCE)


@step("{quiet}POW2", quiet=QUIET)
def _power(machine: Machine, *, quiet: bool) -> None:
    bits = _pop_shift(machine, _MAX_BITS, quiet=quiet, since=_STRICT_SINCE)
    _leave(machine, NAN if bits is NAN else 1 << bits, quiet=quiet)  # type: ignore[operator]


# Sizes


def signed_size(value: int) -> int:
    """Return the fewest bits of a number in two's complement; 0 for 0."""
    if value == 0:
        return 0
    return (value if value > 0 else ~value).bit_length() + 1


def fits(value: Number, bits: int, *, signed: bool) -> bool:
    """Return whether a number fits ``bits`` bits, in two's complement if ``signed``."""
    if not isinstance(value, int):
        return False
    if signed:
        return -(1 << bits >> 1) <= value < max(1 << bits >> 1, 1)
    return value >= 0 and not value >> bits


_UNSIGNED = {"": True, "U": False}


@numbered("{quiet}{signed}FITS", "{quiet}{signed}FITSX", _MAX_BITS, quiet=QUIET, signed=_UNSIGNED)
def _check_fits(machine: Machine, bits: int, *, signed: bool, quiet: bool) -> None:
    value = machine.pop_int()
    _leave(machine, value if fits(value, bits, signed=signed) else NAN, quiet=quiet)


@step("{quiet}{signed}BITSIZE", quiet=QUIET, signed=_UNSIGNED)
def _measure(machine: Machine, *, signed: bool, quiet: bool) -> None:
    value = machine.pop_int()
    if value is NAN or (not signed and value < 0):  # type: ignore[operator]
        if not quiet:
            raise VmError(Exit.RANGE_CHECK)
        machine.stack.append(NAN)
        return
    machine.stack.append(signed_size(value) if signed else value.bit_length())  # type: ignore[arg-type, union-attr]

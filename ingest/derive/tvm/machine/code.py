"""Decodes code with the table of instructions: for the machine, and for listings.

The groups of instructions register what runs them by name, families with their variants at once. A
block of decoded steps is cached in its cell.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple, TypeVar

from tonlake.ingest.derive.tvm.machine.cell import Loader, Slice
from tonlake.ingest.derive.tvm.machine.continuation import Continuation, Ordinary
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.state import Machine, Step

WINDOW_BITS = 24
"""Length of the longest opcode; a shorter remainder of a cell is padded with zeros."""

INSTRUCTION_GAS = 10
"""Gas of an instruction, besides one for each bit of its opcode and of its short operands."""

_DIVISIONS, _QUIET_DIVISIONS, _ROUNDING = 0xA9, 0xB7A9, 3
_RETURN_GAS, _JUMP_GAS = 5, 10
_NUMBERS = re.compile(r"[+-]?[0-9]+")

Operand = Any
"""An operand: a number, a Cell, or a Slice of constant data or of code."""

STEPS: dict[str, Step] = {}
"""What runs instructions without operands, by name."""
MAKERS: dict[str, Callable[..., Step]] = {}
"""Functions of the code after an instruction and of its operands that return a step, by name."""
OPCODES: dict[int, Callable[..., Step]] = {}
"""Makers of families whose opcodes say what they do, by the first opcode of the row."""

F = TypeVar("F", bound="Callable[..., Any]")
Choice = Mapping[str, Any]
"""The words that may stand in a place of a name, with what each means."""

QUIET: Choice = {"": False, "Q": True}
KEEPS: Choice = {"": True, "P": False}
SIGNED: Choice = {"I": True, "U": False}
WHEN: Choice = {"IF": True, "IFNOT": False}


def _expand(names: Iterable[str], choices: Mapping[str, Choice]) -> Iterator[tuple[str, Choice]]:
    """Yield the names of families, such as ``LD{signed}{quiet}``, with what their words mean."""
    for name, words in product(names, product(*choices.values())):
        chosen = dict(zip(choices, words, strict=True))
        yield name.format(**chosen), {key: choices[key][word] for key, word in chosen.items()}


def _bind(function: F, meaning: Choice) -> F | partial[Any]:
    return partial(function, **meaning) if meaning else function


def step(*names: str, **choices: Choice) -> Callable[[F], F]:
    """Register a function of the machine, which runs instructions without operands."""

    def register(function: F) -> F:
        for name, meaning in _expand(names, choices):
            STEPS[name] = _bind(function, meaning)
        return function

    return register


def control(*names: str, **choices: Choice) -> Callable[[F], F]:
    """Register a function of the following code and the operands that returns a step."""

    def register(function: F) -> F:
        for name, meaning in _expand(names, choices):
            MAKERS[name] = partial(function, **meaning)
        return function

    return register


def maker(*names: str, **choices: Choice) -> Callable[[F], F]:
    """Register a function of the operands that returns a step."""

    def register(function: F) -> F:
        control(*names, **choices)(lambda _code, *rest, **meaning: function(*rest, **meaning))
        return function

    return register


def with_operands(*names: str, **choices: Choice) -> Callable[[F], F]:
    """Register a function of the operands and the machine."""

    def register(function: F) -> F:
        maker(*names, **choices)(partial(partial, function))
        return function

    return register


def with_code(*names: str, **choices: Choice) -> Callable[[F], F]:
    """Register a function of the code after the instruction, the operands and the machine."""

    def register(function: F) -> F:
        control(*names, **choices)(partial(partial, function))
        return function

    return register


def numbered(
    name: str, popped: str, most: int, *, least: int = 0, count: int = 2, **choices: Choice
) -> Callable[[F], F]:
    """Register a function of the machine and a number: in the code, or in ``popped`` on the stack.

    That form expects ``count`` values, with a number from ``least`` to ``most`` on top.
    """

    def register(function: F) -> F:
        forms = zip(_expand([name], choices), _expand([popped], choices), strict=True)
        for (form, meaning), (form_popped, _) in forms:
            run = _bind(function, meaning)
            MAKERS[form] = partial(_make_numbered, run)
            STEPS[form_popped] = partial(_take_number, run, count, most, least)
        return function

    return register


def _make_numbered(run: Callable[..., Continuation | None], _code: Slice, number: int) -> Step:
    return lambda machine: run(machine, number)


def _take_number(
    run: Callable[..., Continuation | None], count: int, most: int, least: int, machine: Machine
) -> Continuation | None:
    machine.need(count)
    return run(machine, machine.pop_range(most, least))


class Instruction(NamedTuple):
    """A row of the table; its header describes the operand forms."""

    first: int
    last: int
    opcode_bits: int
    since: int
    name: str
    operands: tuple[str, ...]


@cache
def load_instructions() -> tuple[list[int], list[Instruction]]:
    """Return the first opcode of each row, and the table, both in ascending order."""
    text = files("tonlake.ingest.derive.tvm.machine").joinpath("instructions.txt")
    found = []
    for line in text.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            first, last, bits, since, name, *operands = line.split()
            span = int(first, 16), int(last, 16)
            found.append(Instruction(*span, int(bits), int(since), name, tuple(operands)))
    return [each.first for each in found], found


def find_instruction(window: int) -> Instruction | None:
    """Return the instruction that begins with the 24 bits of ``window``, or None."""
    firsts, table = load_instructions()
    at = bisect_right(firsts, window) - 1
    return table[at] if at >= 0 and window <= table[at].last else None


def peek(code: Loader) -> int:
    """Return the next 24 bits, padded with zeros."""
    left = code.end - code.start
    cell = code.cell
    value = cell.value >> cell.bits - code.end & (1 << left) - 1
    return value >> left - WINDOW_BITS if left >= WINDOW_BITS else value << WINDOW_BITS - left


class Form(NamedTuple):
    """How an operand is read: the bits that cost gas, and the function that reads it."""

    bits: int
    read: Callable[[Loader], Operand]


_FORMS: dict[str, Form] = {
    "tiny": Form(4, lambda code: (code.uint(4) + 5) % 16 - 5),
    "most": Form(4, lambda code: (code.uint(4) + 1) % 16 - 1),
    "words": Form(3, lambda code: (code.uint(3) + 1) * 32),
    "long": Form(5, lambda code: code.sint(8 * code.uint(5) + 19)),
    "cell": Form(0, Loader.child),
    "ref": Form(0, Loader.child),
    "dict": Form(0, Loader.child),
    "text": Form(4, lambda code: code.part(8 * (code.uint(4) + 1))),
}


@cache
def parse_form(form: str) -> Form:
    """Return how the operand with a form is read."""
    if form in _FORMS:
        return _FORMS[form]
    if form.startswith("="):
        number = int(form[1:].lstrip("sc"))
        return Form(0, lambda _code: number)
    kind, *sizes = form.split(":")
    if kind == "code":
        refs, octets = map(int, sizes)
        return Form(refs + octets, lambda code: _read_code(code, refs, octets))
    if kind == "slice":
        return _parse_slice_form(*map(int, sizes))
    bits, *more = map(int, _NUMBERS.findall(form))
    added = sum(more)
    if form[0] == "i":
        return Form(bits, lambda code: code.sint(bits) + added)
    return Form(bits, lambda code: code.uint(bits) + added)


def _read_code(code: Loader, refs: int, octets: int) -> Operand:
    count, size = code.uint(refs), code.uint(octets)
    return code.part(8 * size, count)


def _parse_slice_form(refs: int, more_refs: int, size: int, more_bits: int) -> Form:
    def read(code: Loader) -> Operand:
        count = code.uint(refs) + more_refs
        part = code.part(8 * code.uint(size) + more_bits, count)
        value = part.uint()
        part.end -= (value & -value).bit_length() or part.bits  # a one and the zeros after it
        return part

    return Form(refs + size, read)


def decode(code: Slice) -> list[tuple[int, Step]]:
    """Return the steps of a code with the gas of each; the last one leaves the code."""
    reader = Loader(code)
    steps: list[tuple[int, Step]] = []
    while reader.start < reader.end:
        gas, found = _decode_one(reader)
        steps.append((gas, found))
        if found is invalid:
            return steps
    if reader.ref < reader.ref_end:
        following = reader.child()
        steps.append((_JUMP_GAS, lambda machine: machine.jump(Ordinary(machine.load(following)))))
    else:
        steps.append((_RETURN_GAS, Machine.ret))
    return steps


def invalid(_machine: Machine) -> Continuation | None:
    """Refuse an unknown instruction: the step in its place."""
    raise VmError(Exit.INVALID_OPCODE)


def _decode_one(reader: Loader) -> tuple[int, Step]:
    """Read an instruction; return its gas and the step that runs it."""
    window = peek(reader)
    found = find_instruction(window)
    if found is None:
        return _charge_invalid(window), invalid
    forms = [parse_form(form) for form in found.operands]
    gas = _charge(found)
    bits = gas - INSTRUCTION_GAS
    if reader.end - reader.start < bits:
        return gas, invalid
    reader.start += found.opcode_bits
    try:
        operands = [form.read(reader) for form in forms]
    except VmError:
        return gas, invalid
    made = _make_step(found, operands, reader)
    if found.since:
        early = gas if found.first in OPCODES else INSTRUCTION_GAS
        return 0, _guard(found.since, early, gas, made)
    return gas, made


def _charge(found: Instruction) -> int:
    """Return the gas of an instruction."""
    bits = sum(parse_form(form).bits for form in found.operands)
    return INSTRUCTION_GAS + found.opcode_bits + bits


def _charge_invalid(window: int) -> int:
    """Return the gas of no instruction; a division that rounds in no known way costs all of it."""
    if window >> 16 == _DIVISIONS:
        window &= ~(_ROUNDING << 8)
    elif window >> 8 == _QUIET_DIVISIONS:
        window &= ~_ROUNDING
    else:
        return INSTRUCTION_GAS
    found = find_instruction(window)
    return INSTRUCTION_GAS if found is None else _charge(found)


def _make_step(found: Instruction, operands: list[Operand], reader: Loader) -> Step:
    name = found.name
    if found.first in OPCODES:
        return OPCODES[found.first](*operands)
    if name in STEPS and not operands:
        return STEPS[name]
    return MAKERS[name](reader.rest(), *operands) if name in MAKERS else invalid


def _guard(since: int, early: int, gas: int, made: Step) -> Step:
    """Return a step that is an invalid opcode before a global version, with the gas ``early``.

    The node decodes a division with an added number in every version, and then refuses it.
    """

    def guarded(machine: Machine) -> Continuation | None:
        if machine.version < since:
            machine.use(early)
            raise VmError(Exit.INVALID_OPCODE)
        machine.use(gas)
        return made(machine)

    return guarded

"""Instructions that read slices and compare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.machine.number import push_value
from tonlake.ingest.derive.contract.machine.stack import (
    Stack,
    Thrown,
    move,
    show_bits,
)
from tonlake.ingest.derive.contract.stack import Cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step

_MAX_BITS, _MAX_REFS = 1023, 4
_INTEGER_BITS = 257
_SHORT_REF_BITS = 2


def _begin(stack: Stack) -> None:
    stack.append(stack.cell().slice())


def _expect_end(stack: Stack) -> None:
    start = stack.slice()
    if start.bits_left or start.refs_left:
        raise Thrown("data left after the last field")


def _load_ref(stack: Stack) -> None:
    start = stack.start()
    links = start.tree.links[start.cell]
    if start.ref >= len(links):
        raise Thrown("cell underflow")
    stack.append(Cell(start.tree, links[start.ref]))
    stack.append(move(start, start.bits_left, 1))


def _load_ref_slice(stack: Stack) -> None:
    start = stack.slice()
    child = start.load_ref()
    stack += (start, CellSlice(start.tree, child))


def _peek_ref(place: int) -> Step:
    def step(stack: Stack) -> None:
        start = stack.slice()
        start.ref += place
        stack.append(Cell(start.tree, start.load_ref()))

    return step


def _load(bits: int, *, signed: bool, keeps: bool = True) -> list[Step]:
    """Return LDI, LDU, PLDI or PLDU for a number of bits."""
    mask, sign = (1 << bits) - 1, 1 << bits >> 1 if signed else 0

    def step(stack: Stack) -> None:
        start = stack.start()
        value, left = start.bits()
        left -= bits
        if left < 0:
            raise Thrown("cell underflow")
        number = value >> left & mask
        stack.append(number - ((number & sign) << 1))
        if keeps:
            stack.append(move(start, left))

    return [step]


def _load_many(*, signed: bool, keeps: bool) -> list[Step]:
    """Return LDIX or a variant: the number of bits is on the stack."""

    def step(stack: Stack) -> None:
        bits = stack.number(_INTEGER_BITS if signed else _INTEGER_BITS - 1)
        _load(bits, signed=signed, keeps=keeps)[0](stack)

    return [step]


def _load_slice(bits: int, *, keeps: bool = True) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        stack.append(start.load_slice(bits))
        if keeps:
            stack.append(start)

    return [step]


def _by_count(make: Callable[[int], list[Step]]) -> Step:
    """Return an instruction that pops its number of bits."""

    def step(stack: Stack) -> None:
        make(stack.number(_MAX_BITS))[0](stack)

    return step


def _skip_first(bits: int) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        start.skip(bits)
        stack.append(start)

    return [step]


def _skip_last(bits: int) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        value, left = start.bits()
        start.skip(bits)
        found = CellSlice.at(start.tree, start.cell, value >> bits, left - bits)
        found.ref = start.ref
        stack.append(found)

    return [step]


def _cut_last(bits: int) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        if bits > start.bits_left:
            raise Thrown("cell underflow")
        start.skip(start.bits_left - bits)
        stack.append(start.load_slice(bits))

    return [step]


def _test(holds: Callable[[CellSlice], bool]) -> list[Step]:
    def step(stack: Stack) -> None:
        stack.append(-1 if holds(stack.slice()) else 0)

    return [step]


def _count(*numbers: Callable[[CellSlice], int]) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        stack += [number(start) for number in numbers]

    return [step]


def _are_equal(stack: Stack) -> None:
    second, first = stack.slice(), stack.slice()
    stack.append(-1 if show_bits(first) == show_bits(second) else 0)


def _expect_prefix(stack: Stack) -> None:
    prefix = show_bits(stack.slice())
    _skip_prefix(stack, stack.slice(), *prefix)


def _skip_prefix(stack: Stack, start: CellSlice, value: int, bits: int) -> None:
    if start.load_uint(bits) != value:
        raise Thrown("unexpected prefix")
    stack.append(start)


def _expect_constant(code: Code) -> list[Step]:
    value, bits = code.take_constant(code.take(7) * 8 + 3)

    def step(stack: Stack) -> None:
        _skip_prefix(stack, stack.slice(), value, bits)

    return [step]


def _push_slice(bits: int, refs: int, code: Code) -> list[Step]:
    builder = CellBuilder(code.tree).store_uint(*code.take_constant(bits))
    for _ in range(refs):
        builder.store_ref(code.take_ref().root)
    return [push_value(code.tree.slice(builder.end()))]


def _push_slice_with_refs(code: Code, ref_bits: int, size_bits: int, least: int) -> list[Step]:
    refs, size = code.take(ref_bits), code.take(size_bits)
    return _push_slice(size * 8 + least, refs + (ref_bits == _SHORT_REF_BITS), code)


FIXED: dict[int, list[Step]] = {
    0xC700: _test(lambda start: not start.bits_left and not start.refs_left),
    0xC701: _test(lambda start: not start.bits_left),
    0xC702: _test(lambda start: not start.refs_left),
    0xC703: _test(lambda start: bool(start.bits_left) and start.peek_uint(1) == 1),
    0xC705: [_are_equal],
    0xD0: [_begin],
    0xD1: [_expect_end],
    0xD4: [_load_ref],
    0xD5: [_load_ref_slice],
    0xD700: _load_many(signed=True, keeps=True),
    0xD701: _load_many(signed=False, keeps=True),
    0xD702: _load_many(signed=True, keeps=False),
    0xD703: _load_many(signed=False, keeps=False),
    0xD718: [_by_count(_load_slice)],
    0xD719: [_by_count(lambda bits: _load_slice(bits, keeps=False))],
    0xD720: [_by_count(lambda bits: _load_slice(bits, keeps=False))],
    0xD721: [_by_count(_skip_first)],
    0xD722: [_by_count(_cut_last)],
    0xD723: [_by_count(_skip_last)],
    0xD726: [_expect_prefix],
    0xD749: _count(lambda start: start.bits_left),
    0xD74A: _count(lambda start: start.refs_left),
    0xD74B: _count(lambda start: start.bits_left, lambda start: start.refs_left),
    **{0xD74C | place: [_peek_ref(place)] for place in range(_MAX_REFS)},
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "8B": lambda code: _push_slice(code.take(4) * 8 + 4, 0, code),
    "8C": lambda code: _push_slice_with_refs(code, 2, 5, 1),
    "8D": lambda code: _push_slice_with_refs(code, 3, 7, 6),
    "D2": lambda code: _load(code.take(8) + 1, signed=True),
    "D3": lambda code: _load(code.take(8) + 1, signed=False),
    "D6": lambda code: _load_slice(code.take(8) + 1),
    "D708": lambda code: _load(code.take(8) + 1, signed=True),
    "D709": lambda code: _load(code.take(8) + 1, signed=False),
    "D70A": lambda code: _load(code.take(8) + 1, signed=True, keeps=False),
    "D70B": lambda code: _load(code.take(8) + 1, signed=False, keeps=False),
    "D72A_": _expect_constant,
    "D71C": lambda code: _load_slice(code.take(8) + 1),
    "D71D": lambda code: _load_slice(code.take(8) + 1, keeps=False),
}
"""Decoders of instructions with operands, by prefix in the notation of the TVM."""

"""Instructions that store into builders, end cells, and hash them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.machine.stack import (
    Builder,
    Stack,
    Thrown,
    list_refs,
    show_bits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step
    from tonlake.ingest.derive.contract.stack import Cell

    Stored = tuple[int, int, tuple[Cell, ...]]

_INTEGER_BITS, _MAX_BITS = 257, 1023
_COUNT_BITS = 4
_GRAM_BYTES = 15
_EMPTY = Builder(0, 0, ())


def _begin(stack: Stack) -> None:
    stack.append(_EMPTY)


def _end(stack: Stack) -> None:
    stack.append(stack.end(stack.builder()))


def _pack(value: int, bits: int, *, signed: bool) -> int:
    """Return the bits of an integer; raise Thrown if it does not fit."""
    if signed:
        half = 1 << bits >> 1
        if not -half <= value < max(half, 1):
            raise Thrown("integer out of range")
        return value & ((1 << bits) - 1)
    if value < 0 or value >> bits:
        raise Thrown("integer out of range")
    return value


def _store(bits: int, *, signed: bool, reverse: bool = False) -> list[Step]:
    """Return STI or STU for a number of bits; ``reverse`` expects the builder below the integer."""

    def step(stack: Stack) -> None:
        if reverse:
            value, builder = stack.integer(), stack.builder()
        else:
            builder, value = stack.builder(), stack.integer()
        stack.append(builder.store(_pack(value, bits, signed=signed), bits))

    return [step]


def _store_many(*, signed: bool) -> list[Step]:
    """Return STIX or STUX: the number of bits is on the stack."""

    def step(stack: Stack) -> None:
        bits = stack.number(_INTEGER_BITS if signed else _INTEGER_BITS - 1)
        _store(bits, signed=signed)[0](stack)

    return [step]


def _store_taken(take: Callable[[Stack], Stored], *, on_top: bool = False) -> list[Step]:
    """Return the steps that pop and store something; ``on_top`` pops it before the builder."""

    def step(stack: Stack) -> None:
        if on_top:
            taken = take(stack)
            stack.append(stack.builder().store(*taken))
        else:
            builder = stack.builder()
            stack.append(builder.store(*take(stack)))

    return [step]


def _take_slice(stack: Stack) -> Stored:
    start = stack.slice()
    return *show_bits(start), list_refs(start)


def _take_ref(stack: Stack) -> Stored:
    return 0, 0, (stack.cell(),)


def _take_ended(stack: Stack) -> Stored:
    return 0, 0, (stack.end(stack.builder()),)


def _store_dictionary(stack: Stack) -> None:
    builder, root = stack.builder(), stack.maybe_cell()
    stack.append(builder.store(0, 1) if root is None else builder.store(1, 1, (root,)))


def _store_grams(stack: Stack) -> None:
    value, builder = stack.integer(), stack.builder()
    count = (value.bit_length() + 7) // 8
    if value < 0 or count > _GRAM_BYTES:
        raise Thrown("amount out of range")
    stack.append(builder.store(count, _COUNT_BITS).store(value, count * 8))


def _store_zeroes(stack: Stack) -> None:
    bits = stack.number(_MAX_BITS)
    stack.append(stack.builder().store(0, bits))


def _store_ones(stack: Stack) -> None:
    bits = stack.number(_MAX_BITS)
    stack.append(stack.builder().store((1 << bits) - 1, bits))


def _store_same(stack: Stack) -> None:
    bit, bits = stack.number(1), stack.number(_MAX_BITS)
    stack.append(stack.builder().store(((1 << bits) - 1) * bit, bits))


def _store_constant(code: Code) -> list[Step]:
    refs, size = code.take(2), code.take(3)
    value, bits = code.take_constant(size * 8 + 2)
    children = tuple(code.take_ref() for _ in range(refs))

    def step(stack: Stack) -> None:
        stack.append(stack.builder().store(value, bits, children))

    return [step]


def _count(number: Callable[[Builder], int]) -> list[Step]:
    def step(stack: Stack) -> None:
        stack.append(number(stack.builder()))

    return [step]


def _hash_cell(stack: Stack) -> None:
    stack.append(int.from_bytes(stack.cell().hash, "big"))


def _hash_slice(stack: Stack) -> None:
    cell = stack.end(Builder(*_take_slice(stack)))
    stack.append(int.from_bytes(cell.hash, "big"))


_SINCE_VERSION = 12
"""Global version that added BTOS and HASHBU."""


def _open_builder(stack: Stack) -> None:
    stack.require(_SINCE_VERSION)
    stack.append(stack.end(stack.builder()).slice())


def _hash_builder(stack: Stack) -> None:
    stack.require(_SINCE_VERSION)
    stack.append(int.from_bytes(stack.end(stack.builder()).hash, "big"))


FIXED: dict[int, list[Step]] = {
    0xC8: [_begin],
    0xC9: [_end],
    0xCC: _store_taken(_take_ref),
    0xCD: _store_taken(_take_ended, on_top=True),
    0xCE: _store_taken(_take_slice),
    0xCF00: _store_many(signed=True),
    0xCF01: _store_many(signed=False),
    0xCF10: _store_taken(_take_ref),
    0xCF11: _store_taken(_take_ended),
    0xCF12: _store_taken(_take_slice),
    0xCF13: _store_taken(Stack.builder),
    0xCF14: _store_taken(_take_ref, on_top=True),
    0xCF15: _store_taken(_take_ended, on_top=True),
    0xCF16: _store_taken(_take_slice, on_top=True),
    0xCF17: _store_taken(Stack.builder, on_top=True),
    0xCF31: _count(lambda builder: builder.bits),
    0xCF32: _count(lambda builder: len(builder.children)),
    0xCF40: [_store_zeroes],
    0xCF41: [_store_ones],
    0xCF42: [_store_same],
    0xCF50: [_open_builder],
    0xF400: [_store_dictionary],
    0xF900: [_hash_cell],
    0xF901: [_hash_slice],
    0xF916: [_hash_builder],
    0xFA02: [_store_grams],
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "CA": lambda code: _store(code.take(8) + 1, signed=True),
    "CB": lambda code: _store(code.take(8) + 1, signed=False),
    "CF08": lambda code: _store(code.take(8) + 1, signed=True),
    "CF09": lambda code: _store(code.take(8) + 1, signed=False),
    "CF0A": lambda code: _store(code.take(8) + 1, signed=True, reverse=True),
    "CF0B": lambda code: _store(code.take(8) + 1, signed=False, reverse=True),
    "CFC_": _store_constant,
}
"""Decoders of instructions with operands, by prefix in the notation of the TVM."""

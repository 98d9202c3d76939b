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

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.derive.contract.machine.code import Code, Step

_INTEGER_BITS, _MOST_BITS = 257, 1023
_COUNT_BITS = 4
_GRAM_BYTES = 15
_EMPTY = Builder(0, 0, ())


def _begin(stack: Stack) -> None:
    stack.append(_EMPTY)


def _end(stack: Stack) -> None:
    stack.append(stack.end(stack.builder()))


def _pack(value: int, bits: int, *, signed: bool) -> int:
    """Return the bits of an integer; raises Thrown where it does not fit."""
    if signed:
        half = 1 << bits >> 1
        if not -half <= value < max(half, 1):
            raise Thrown("an integer that does not fit")
        return value & ((1 << bits) - 1)
    if value < 0 or value >> bits:
        raise Thrown("an integer that does not fit")
    return value


def _store(bits: int, *, signed: bool, turned: bool = False) -> list[Step]:
    """Return STI or STU of a number of bits; ``turned`` has the builder below the integer."""

    def step(stack: Stack) -> None:
        if turned:
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


def _store_slice(builder: Builder, start: CellSlice) -> Builder:
    return builder.store(*show_bits(start), list_refs(start))


def _store_slice_below(stack: Stack) -> None:
    builder = stack.builder()
    stack.append(_store_slice(builder, stack.slice()))


def _store_slice_on_top(stack: Stack) -> None:
    start = stack.slice()
    stack.append(_store_slice(stack.builder(), start))


def _store_ref_below(stack: Stack) -> None:
    builder = stack.builder()
    stack.append(builder.store(0, 0, (stack.cell(),)))


def _store_ref_on_top(stack: Stack) -> None:
    cell = stack.cell()
    stack.append(stack.builder().store(0, 0, (cell,)))


def _store_ended_below(stack: Stack) -> None:
    builder = stack.builder()
    stack.append(builder.store(0, 0, (stack.end(stack.builder()),)))


def _store_ended_on_top(stack: Stack) -> None:
    cell = stack.end(stack.builder())
    stack.append(stack.builder().store(0, 0, (cell,)))


def _store_builder_below(stack: Stack) -> None:
    builder = stack.builder()
    stack.append(builder.store(*stack.builder()))


def _store_builder_on_top(stack: Stack) -> None:
    added = stack.builder()
    stack.append(stack.builder().store(*added))


def _store_dictionary(stack: Stack) -> None:
    builder, root = stack.builder(), stack.maybe_cell()
    stack.append(builder.store(0, 1) if root is None else builder.store(1, 1, (root,)))


def _store_grams(stack: Stack) -> None:
    value, builder = stack.integer(), stack.builder()
    count = (value.bit_length() + 7) // 8
    if value < 0 or count > _GRAM_BYTES:
        raise Thrown("an amount that does not fit")
    stack.append(builder.store(count, _COUNT_BITS).store(value, count * 8))


def _store_zeroes(stack: Stack) -> None:
    bits = stack.number(_MOST_BITS)
    stack.append(stack.builder().store(0, bits))


def _store_ones(stack: Stack) -> None:
    bits = stack.number(_MOST_BITS)
    stack.append(stack.builder().store((1 << bits) - 1, bits))


def _store_same(stack: Stack) -> None:
    bit, bits = stack.number(1), stack.number(_MOST_BITS)
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
    start = stack.slice()
    cell = stack.end(Builder(*show_bits(start), list_refs(start)))
    stack.append(int.from_bytes(cell.hash, "big"))


FIXED: dict[int, list[Step]] = {
    0xC8: [_begin],
    0xC9: [_end],
    0xCC: [_store_ref_below],
    0xCD: [_store_ended_on_top],
    0xCE: [_store_slice_below],
    0xCF00: _store_many(signed=True),
    0xCF01: _store_many(signed=False),
    0xCF10: [_store_ref_below],
    0xCF11: [_store_ended_below],
    0xCF12: [_store_slice_below],
    0xCF13: [_store_builder_below],
    0xCF14: [_store_ref_on_top],
    0xCF15: [_store_ended_on_top],
    0xCF16: [_store_slice_on_top],
    0xCF17: [_store_builder_on_top],
    0xCF31: _count(lambda builder: builder.bits),
    0xCF32: _count(lambda builder: len(builder.children)),
    0xCF40: [_store_zeroes],
    0xCF41: [_store_ones],
    0xCF42: [_store_same],
    0xF400: [_store_dictionary],
    0xF900: [_hash_cell],
    0xF901: [_hash_slice],
    0xFA02: [_store_grams],
}
"""Steps of instructions without operands, by their bits."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "CA": lambda code: _store(code.take(8) + 1, signed=True),
    "CB": lambda code: _store(code.take(8) + 1, signed=False),
    "CF08": lambda code: _store(code.take(8) + 1, signed=True),
    "CF09": lambda code: _store(code.take(8) + 1, signed=False),
    "CF0A": lambda code: _store(code.take(8) + 1, signed=True, turned=True),
    "CF0B": lambda code: _store(code.take(8) + 1, signed=False, turned=True),
    "CFC_": _store_constant,
}
"""What decodes instructions with operands, by their first bits, in the TVM's notation."""

"""Instructions that look up keys in dictionaries, and jump to code in their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.dictionary import load_label
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.machine.number import push_value
from tonlake.ingest.derive.contract.machine.stack import Declined, Stack
from tonlake.ingest.derive.contract.stack import Cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Continuation, Signal, Step

_MAX_BITS, _INTEGER_BITS = 1023, 257
_FORK_REFS = 2


def find_value(root: Cell | None, key: int, bits: int) -> CellSlice | None:
    """Return the value of an unsigned key in ``HashmapE bits X``; None if the key is absent.

    Raises:
        BocError, Declined: a cell on the path is not a valid node of the dictionary.
    """
    if root is None:
        return None
    tree, node, left = root.tree, root.slice(), bits
    while True:
        label, rest = load_label(node, left, 0)
        if rest and (node.bits_left or node.refs_left != _FORK_REFS):
            raise Declined("invalid dictionary node")
        if label != key >> rest & ((1 << left - rest) - 1):
            return None
        if not rest:
            return node
        left = rest - 1
        zero, one = node.load_ref(), node.load_ref()
        node = CellSlice(tree, one if key >> left & 1 else zero)


def _take_key(stack: Stack, bits: int, *, signed: bool) -> int:
    """Pop an integer and return it as a key."""
    key = stack.integer()
    least, end = (-(1 << bits >> 1), 1 << bits >> 1) if signed else (0, 1 << bits)
    if not least <= key < end:
        raise Declined("key out of range")
    return key & ((1 << bits) - 1)


def _get(kind: str, *, is_ref: bool) -> list[Step]:
    """Return DICTGET or a variant; ``kind`` of key is "slice", "signed" or "unsigned"."""

    def step(stack: Stack) -> None:
        bits, root = stack.number(_INTEGER_BITS - 1), stack.maybe_cell()
        if kind == "slice":
            key = stack.slice().load_uint(bits)
        else:
            key = _take_key(stack, bits, signed=kind == "signed")
        value = find_value(root, key, bits)
        if value is None:
            stack.append(0)
            return
        stack += (_take_ref(value) if is_ref else value, -1)

    return [step]


def _take_ref(value: CellSlice) -> Cell:
    if value.bits_left or value.refs_left != 1:
        raise Declined("dictionary value is not a reference")
    return Cell(value.tree, value.load_ref())


def _go(*, signed: bool, calls: bool, pushes: bool) -> Callable[[Code], list[Step]]:
    """Return the decoder of DICTIGETJMP or a variant; ``pushes`` is set for those that end in Z."""

    def decode(code: Code) -> list[Step]:
        known: dict[tuple[Cell | None, int, int], Continuation | None] = {}

        def find(root: Cell | None, key: int, bits: int) -> Continuation | None:
            value = find_value(root, key, bits)
            return None if value is None else code.open_slice(value)

        def step(stack: Stack) -> Signal:
            bits, root = stack.number(_MAX_BITS), stack.maybe_cell()
            number = stack.pop()
            place = root, number, bits
            if number.__class__ is int and place in known:
                found = known[place]
            else:
                stack.append(number)
                found = find(root, _take_key(stack, bits, signed=signed), bits)
                if root is not None and root.tree is code.tree:
                    known[place] = found
            if found is None:
                if pushes:
                    stack.append(number)
                return None
            return found if calls else found.jump

        return [step]

    return decode


def _push_dictionary(code: Code) -> list[Step]:
    root, bits = code.take_ref(), code.take(10)
    return [push_value(root), push_value(bits)]


FIXED: dict[int, list[Step]] = {
    0xF40A: _get("slice", is_ref=False),
    0xF40B: _get("slice", is_ref=True),
    0xF40C: _get("signed", is_ref=False),
    0xF40D: _get("signed", is_ref=True),
    0xF40E: _get("unsigned", is_ref=False),
    0xF40F: _get("unsigned", is_ref=True),
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {
    "F4A6_": _push_dictionary,
    "F4A0": _go(signed=True, calls=False, pushes=False),
    "F4A1": _go(signed=False, calls=False, pushes=False),
    "F4A2": _go(signed=True, calls=True, pushes=False),
    "F4A3": _go(signed=False, calls=True, pushes=False),
    "F4BC": _go(signed=True, calls=False, pushes=True),
    "F4BD": _go(signed=False, calls=False, pushes=True),
    "F4BE": _go(signed=True, calls=True, pushes=True),
    "F4BF": _go(signed=False, calls=True, pushes=True),
}
"""Decoders of instructions, by prefix in the notation of the TVM."""

"""Instructions that read addresses, amounts and optional references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.machine.stack import Declined, Stack, move
from tonlake.ingest.derive.contract.stack import Cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step

_GRAM_BITS, _LONG_BITS = 4, 5
_EXTERN_BITS, _STD_BITS = 9, 264
_NONE, _EXTERN, _STD = 0, 1, 2
_HEAD_BITS, _HEAD_MASK, _PLAIN, _PLAIN_BITS = 3, 7, 0b100, 267  # addr_std$10 without anycast


def _load_dictionary(*, keeps: bool, pushes: bool = True) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        root = start.load_maybe_ref()
        if pushes:
            stack.append(None if root is None else Cell(start.tree, root))
        if keeps:
            stack.append(start)

    return [step]


def _load_var(length_bits: int, *, signed: bool) -> list[Step]:
    def step(stack: Stack) -> None:
        start = stack.slice()
        bits = start.load_uint(length_bits) * 8
        stack += (start.load_int(bits) if signed else start.load_uint(bits), start)

    return [step]


def _skip_address(start: CellSlice) -> None:
    """Skip addr_none, addr_extern, or addr_std without anycast."""
    kind = start.load_uint(2)
    if kind == _EXTERN:
        start.skip(start.load_uint(_EXTERN_BITS))
    elif kind == _STD:
        if start.load_bit():
            raise Declined("address with anycast")
        start.skip(_STD_BITS)
    elif kind != _NONE:
        raise Declined("addr_var")


def _load_address(stack: Stack) -> None:
    start = stack.start()
    bits = _PLAIN_BITS
    value, left = start.bits()
    if left < bits or value >> left - _HEAD_BITS & _HEAD_MASK != _PLAIN:
        behind = start.copy()
        _skip_address(behind)
        bits = left - behind.bits_left
    found = CellSlice.at(start.tree, start.cell, value >> left - bits, bits)
    found.ref = len(start.tree.links[start.cell])
    stack.append(found)
    stack.append(move(start, left - bits))


def _split_address(stack: Stack) -> None:
    """Split addr_std into workchain and account id."""
    start = stack.slice()
    if start.load_uint(3) != _STD << 1 or start.refs_left:
        raise Declined("expected addr_std without anycast")
    stack += (start.load_int(8), start.load_uint(256))
    if start.bits_left:
        raise Declined("data left after the address")


FIXED: dict[int, list[Step]] = {
    0xF401: _load_dictionary(keeps=True, pushes=False),
    0xF404: _load_dictionary(keeps=True),
    0xF405: _load_dictionary(keeps=False),
    0xFA00: _load_var(_GRAM_BITS, signed=False),
    0xFA01: _load_var(_GRAM_BITS, signed=True),
    0xFA04: _load_var(_LONG_BITS, signed=False),
    0xFA05: _load_var(_LONG_BITS, signed=True),
    0xFA40: [_load_address],
    0xFA44: [_split_address],
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {}
"""Empty: none of these instructions has operands."""

"""Instructions that read addresses, amounts and optional references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.contract.machine.stack import (
    Builder,
    Declined,
    Stack,
    Thrown,
    list_refs,
    move,
    show_bits,
)
from tonlake.ingest.derive.contract.stack import Cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step

_GRAM_BITS, _LONG_BITS = 4, 5
_EXTERN_BITS, _STD_BITS = 9, 264
_NONE, _EXTERN, _STD = 0, 1, 2
_NONE_BITS = 2
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


_CODE_SINCE_VERSION = 4
"""Global version that added the account's code to c7."""


def _push_code(stack: Stack) -> None:
    """Push the account's code: MYCODE."""
    stack.require(_CODE_SINCE_VERSION)
    if stack.account.code is None:
        raise Declined("the code is unknown")
    stack.append(stack.account.code)


_SINCE_VERSION = 12
"""Global version that added the instructions on standard addresses alone."""


def _find_standard(start: CellSlice, *, optional: bool) -> int:
    """Return the bits of the addr_std at the start, or of addr_none if allowed; else 0."""
    left = start.bits_left
    if left >= _PLAIN_BITS and start.peek_uint(_HEAD_BITS) == _PLAIN:
        return _PLAIN_BITS
    is_none = optional and left >= _NONE_BITS and start.peek_uint(_NONE_BITS) == _NONE
    return _NONE_BITS if is_none else 0


def _load_standard(*, optional: bool, quiet: bool) -> list[Step]:
    """Return LDSTDADDR, LDOPTSTDADDR (null for addr_none), or their quiet forms."""

    def step(stack: Stack) -> None:
        stack.require(_SINCE_VERSION)
        start = stack.start()
        bits = _find_standard(start, optional=optional)
        if not bits:
            if not quiet:
                raise Thrown("expected a standard address")
            stack += (start, 0)
            return
        address = None
        if bits == _PLAIN_BITS:
            value, left = start.bits()
            address = CellSlice.at(start.tree, start.cell, value >> left - bits, bits)
            address.ref = len(start.tree.links[start.cell])
        stack += (address, move(start, start.bits_left - bits))
        if quiet:
            stack.append(-1)

    return [step]


def _store_standard(*, optional: bool, quiet: bool) -> list[Step]:
    """Return STSTDADDR, STOPTSTDADDR (addr_none for null), or their quiet forms."""

    def step(stack: Stack) -> None:
        stack.require(_SINCE_VERSION)
        builder = stack.builder()
        address = stack.pop() if optional and stack and stack[-1] is None else stack.start()
        stored = _append_standard(builder, address)
        if stored is None:
            if not quiet:
                raise Thrown("not a standard address, or no room for it")
            stack += (address, builder, -1)
            return
        stack.append(stored)
        if quiet:
            stack.append(0)

    return [step]


def _append_standard(builder: Builder, address: CellSlice | None) -> Builder | None:
    """Return the builder with an address appended; None if it is no addr_std or does not fit."""
    value, bits = (_NONE, _NONE_BITS) if address is None else show_bits(address)
    if address is not None:
        is_plain = bits == _PLAIN_BITS and value >> bits - _HEAD_BITS == _PLAIN
        if not is_plain or list_refs(address):
            return None
    try:
        return builder.store(value, bits)
    except Thrown:
        return None


FIXED: dict[int, list[Step]] = {
    0xF401: _load_dictionary(keeps=True, pushes=False),
    0xF404: _load_dictionary(keeps=True),
    0xF405: _load_dictionary(keeps=False),
    0xF82A: [_push_code],
    0xFA00: _load_var(_GRAM_BITS, signed=False),
    0xFA01: _load_var(_GRAM_BITS, signed=True),
    0xFA04: _load_var(_LONG_BITS, signed=False),
    0xFA05: _load_var(_LONG_BITS, signed=True),
    0xFA40: [_load_address],
    0xFA44: [_split_address],
    0xFA48: _load_standard(optional=False, quiet=False),
    0xFA49: _load_standard(optional=False, quiet=True),
    0xFA50: _load_standard(optional=True, quiet=False),
    0xFA51: _load_standard(optional=True, quiet=True),
    0xFA52: _store_standard(optional=False, quiet=False),
    0xFA53: _store_standard(optional=False, quiet=True),
    0xFA54: _store_standard(optional=True, quiet=False),
    0xFA55: _store_standard(optional=True, quiet=True),
}
"""Steps of instructions without operands, by opcode."""

DECODERS: dict[str, Callable[[Code], list[Step]]] = {}
"""Empty: none of these instructions has operands."""

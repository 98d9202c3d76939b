"""Instructions of codepage 0 by their first bits, and code decoded into steps."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tonlake.ingest.derive.contract.machine import (
    address,
    building,
    control,
    dictionary,
    number,
    reading,
    shuffle,
)
from tonlake.ingest.derive.contract.machine.stack import Declined, Stack
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.contract.machine.code import Code, Step

_MODULES = (shuffle, number, reading, address, building, control, dictionary)
_BYTE = 8
_WORD = 16

ENTRY_GAS = 200
"""No less gas than it takes to go to a continuation, its cell loaded."""

_LIGHT_GAS, _GAS, _LOOK_UP_GAS = 60, 800, 60_000
"""No less gas than an instruction takes beside its bits: one that moves integers, any other one
(500 to end a cell, 100 to load one, 255 for a tuple), one that walks through a dictionary."""

_LIGHT = frozenset((*range(0x6F), *range(0x70, 0x86), *range(0xA0, 0xC4)))
_DICTIONARY = 0xF4


def _read_prefix(text: str) -> tuple[int, int]:
    """Return number of bits and value of a prefix in the TVM's notation, as ``F2C4_``."""
    value, bits = int(text.rstrip("_"), 16), len(text.rstrip("_")) * 4
    if text.endswith("_"):
        tag = (value & -value).bit_length()
        value, bits = value >> tag, bits - tag
    return bits, value


_FIXED: dict[tuple[int, int], list[Step]] = {
    (_BYTE if opcode < 1 << _BYTE else _WORD, opcode): steps
    for module in _MODULES
    for opcode, steps in module.FIXED.items()
}
_DECODERS: dict[tuple[int, int], Callable[[Code], list[Step]]] = {
    _read_prefix(prefix): decode
    for module in _MODULES
    for prefix, decode in module.DECODERS.items()
}
_LENGTHS = sorted({bits for bits, _ in chain(_FIXED, _DECODERS)})


def decode(code: Code) -> tuple[list[Step], int]:
    """Return the steps of a code, and no less gas than they take without what they call.

    From the first instruction on that is not known the rest is one step that declines.
    """
    steps: list[Step] = []
    gas = ENTRY_GAS
    try:
        while code.bits_left:
            first, before = code.peek(_BYTE), code.bits_left
            steps += _decode_one(code)
            if first == _DICTIONARY:
                gas += _LOOK_UP_GAS
            gas += before - code.bits_left + (_LIGHT_GAS if first in _LIGHT else _GAS)
        if code.refs:
            target = code.open(code.take_ref()).jump
            steps.append(lambda _stack: target)
    except (Declined, BocError):
        steps.append(_decline)
    return steps, gas


def _decode_one(code: Code) -> list[Step]:
    for bits in _LENGTHS:
        if bits > code.bits_left:
            break
        key = bits, code.peek(bits)
        if key in _FIXED:
            code.take(bits)
            return _FIXED[key]
        if key in _DECODERS:
            code.take(bits)
            return _DECODERS[key](code)
    raise Declined("an instruction that is not known")


def _decline(_stack: Stack) -> None:
    raise Declined("an instruction that is not known")

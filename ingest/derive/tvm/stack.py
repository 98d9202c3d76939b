"""Values of the TVM's stack, and their encoding for other processes.

An integer is an ``int``, null is None, a tuple is a ``tuple``, and a Lisp-style list (pairs that
end in null, never empty) is a ``list``. Cells, slices and builders are bags of cells.

In the encoding of results null stays null, an integer is decimal text, and all else is a list that
begins with the number of its kind. Decoding yields only data, whatever a broken process sends.
"""

from typing import Any

import msgspec


class StackLimits(msgspec.Struct, frozen=True):
    """Limits of a returned stack."""

    entries: int
    depth: int
    boc_bytes: int


class TvmCell(msgspec.Struct, frozen=True):
    """A cell, as a bag of cells."""

    boc: bytes


class TvmSlice(msgspec.Struct, frozen=True):
    """A slice, as a bag of a cell with only the rest of the slice."""

    boc: bytes


class TvmBuilder(msgspec.Struct, frozen=True):
    """A builder, as a bag of the cell that it would end in."""

    boc: bytes


class TvmNan(msgspec.Struct, frozen=True):
    """Not a number: the result of quiet arithmetic on overflow."""


class TvmOpaque(msgspec.Struct, frozen=True):
    """A continuation, or another value without a representation outside the machine."""


StackValue = Any
"""int, None, TvmCell, TvmSlice, TvmBuilder, TvmNan, TvmOpaque, or a tuple or list of these."""

NAN_TEXT = "NaN"
_BAGS = (TvmCell, TvmSlice, TvmBuilder)
_OPAQUE, _TUPLE, _LIST = 3, 4, 5
INTEGER_BITS = 257


def fits_integer(number: int) -> bool:
    """Return whether a number fits an integer of the TVM: signed, 257 bits."""
    return -(1 << INTEGER_BITS - 1) <= number < 1 << INTEGER_BITS - 1


def pack_value(value: StackValue) -> object:
    """Return a value as plain data.

    Raises:
        TypeError: it is not a stack value.
    """
    if value is None:
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple | list):
        kind = _LIST if isinstance(value, list) else _TUPLE
        return [kind, [pack_value(item) for item in value]]
    if isinstance(value, _BAGS):
        return [_BAGS.index(type(value)), value.boc]
    if isinstance(value, TvmNan):
        return NAN_TEXT
    if isinstance(value, TvmOpaque):
        return [_OPAQUE]
    raise TypeError(f"{type(value).__name__} is not a stack value")


def unpack_value(packed: Any) -> StackValue:  # noqa: ANN401 - plain data of any shape
    """Return the value encoded by ``pack_value``.

    Raises:
        ValueError, TypeError, IndexError: the data are malformed.
    """
    if packed is None:
        return None
    if isinstance(packed, str):
        return TvmNan() if packed == NAN_TEXT else int(packed)
    kind = packed[0]
    if kind == _OPAQUE:
        return TvmOpaque()
    if kind in (_TUPLE, _LIST):
        items = [unpack_value(item) for item in packed[1]]
        return items if kind == _LIST else tuple(items)
    return _BAGS[kind](bytes(packed[1]))

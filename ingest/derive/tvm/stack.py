"""Values of the TVM's stack, and the form in which they travel between processes.

An integer is an ``int``, null is None, a tuple is a ``tuple``, and a list of Lisp (pairs that end
in null, never empty) is a ``list``. Cells, slices and builders are whole bags of cells.

On the way null stays, an integer is decimal text, and all else is a list that begins with the
number of its kind. Nothing that is unpacked can be more than data, whatever a broken process sends.
"""

from __future__ import annotations

from typing import Any

import msgspec


class TvmCell(msgspec.Struct, frozen=True):
    """A cell, as bag of cells."""

    boc: bytes


class TvmSlice(msgspec.Struct, frozen=True):
    """What is left of a slice, as bag of a cell with nothing else in it."""

    boc: bytes


class TvmBuilder(msgspec.Struct, frozen=True):
    """What a builder holds, as bag of the cell it would end in."""

    boc: bytes


class TvmNan(msgspec.Struct, frozen=True):
    """The integer that is no number: what quiet arithmetic gives on overflow."""


class TvmOpaque(msgspec.Struct, frozen=True):
    """A continuation, or another value that has no form outside of the machine."""


StackValue = Any
"""int, None, TvmCell, TvmSlice, TvmBuilder, TvmNan, TvmOpaque, or a tuple or list of these."""

NAN_TEXT = "NaN"
_BAGS = (TvmCell, TvmSlice, TvmBuilder)
_OPAQUE, _TUPLE, _LIST = 3, 4, 5
INTEGER_BITS = 257


def fits_integer(number: int) -> bool:
    """Tell whether a number is one of the TVM: signed, of 257 bits."""
    return -(1 << INTEGER_BITS - 1) <= number < 1 << INTEGER_BITS - 1


def pack_value(value: StackValue) -> object:
    """Return a value as plain data.

    Raises:
        TypeError: it is none of the kinds of value.
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
    raise TypeError(f"{type(value).__name__} is no value of the stack")


def unpack_value(packed: Any) -> StackValue:  # noqa: ANN401 - plain data of any shape
    """Return the value that ``pack_value`` wrote.

    Raises:
        ValueError, TypeError, IndexError: the data are none.
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

"""Writes stack values as cells: VmStack, VmStackValue, VmCont of ``block.tlb``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Builder, Cell, Slice
from tonlake.ingest.derive.tvm.machine.continuation import (
    Again,
    Continuation,
    Data,
    Envelope,
    Ordinary,
    PushInteger,
    Repeat,
    Stop,
    StopWithError,
    Until,
    While,
)
from tonlake.ingest.derive.tvm.machine.dictionary import store_label
from tonlake.ingest.derive.tvm.machine.state import NAN

if TYPE_CHECKING:
    from collections.abc import Sequence

_TINY = 1 << 63
_SAVE_BITS = 4


def write_stack(values: Sequence[Any]) -> Cell:
    """Return VmStack of values, deepest first."""
    return store_stack(Builder(), values).cell()


def store_stack(builder: Builder, values: Sequence[Any]) -> Builder:
    """Store VmStack: the depth, then the top value and a reference to those below it."""
    builder = builder.store(len(values), 24)
    if not values:
        return builder
    rest = EMPTY_CELL
    for value in values[:-1]:
        rest = store_value(Builder(0, 0, (rest,)), value).cell()
    return store_value(builder.store(0, 0, (rest,)), values[-1])


def store_value(builder: Builder, value: Any) -> Builder:  # noqa: ANN401 - a stack value
    """Store VmStackValue."""
    if value is None:
        return builder.store(0, 8)
    if value is NAN:
        return builder.store(0x02FF, 16)
    if value.__class__ is int:
        if -_TINY <= value < _TINY:
            return builder.store(1, 8).store(value & 2 * _TINY - 1, 64)
        return builder.store(0x0200 >> 1, 15).store(value & (1 << 257) - 1, 257)
    if value.__class__ is Cell:
        return builder.store(3, 8, (value,))
    if value.__class__ is Slice:
        return _store_slice(builder.store(4, 8), value)
    if value.__class__ is Builder:
        return builder.store(5, 8, (value.cell(),))
    if value.__class__ is tuple:
        return _store_tuple(builder, value)
    return store_continuation(builder.store(6, 8), value)


def _store_slice(builder: Builder, part: Slice) -> Builder:
    """Store VmCellSlice."""
    bounds = (part.start << 10 | part.end) << 6 | part.ref << 3 | part.ref_end
    return builder.store(bounds, 26, (part.cell,))


def _store_tuple(builder: Builder, values: tuple[Any, ...]) -> Builder:
    """Store a tuple: its length, the values before the last one, the last one."""
    cells = [store_value(Builder(), value).cell() for value in values]
    head: tuple[Cell, ...] = ()
    for place, cell in enumerate(cells):
        if place > 1:  # the values so far in a cell of their own
            head = (Cell(0, 0, head),)
        head = (*head, cell)
    return builder.store(7 << 16 | len(values), 24, head)


def _store_data(builder: Builder, data: Data) -> Builder:
    """Store VmControlData: number of arguments, stack, saved registers, codepage."""
    builder = builder.store(0, 1) if data.nargs < 0 else builder.store(1 << 13 | data.nargs & 0x1FFF, 14)
    builder = builder.store(0, 1) if data.stack is None else store_stack(builder.store(1, 1), data.stack)
    entries = [(number, store_value(Builder(), data.save[number])) for number in sorted(data.save)]
    if entries:
        builder = builder.store(1, 1, (_make_map(entries, _SAVE_BITS),))
    else:
        builder = builder.store(0, 1)
    return builder.store(0, 1) if data.cp is None else builder.store(1 << 16 | data.cp & 0xFFFF, 17)


def _make_map(entries: list[tuple[int, Builder]], left: int) -> Cell:
    """Build a Hashmap of sorted keys of ``left`` bits."""
    first, last = entries[0][0], entries[-1][0]
    shared = left - (first ^ last).bit_length()
    builder = store_label(first >> left - shared, shared, left)
    if len(entries) == 1:
        value = entries[0][1]
        return builder.store(value.value, value.bits, value.refs).cell()
    below = left - shared - 1
    sides: list[list[tuple[int, Builder]]] = [[], []]
    for key, value in entries:
        sides[key >> below & 1].append((key & (1 << below) - 1, value))
    return builder.store(0, 0, tuple(_make_map(side, below) for side in sides)).cell()


def _write(target: Continuation) -> Cell:
    return store_continuation(Builder(), target).cell()


def store_continuation(builder: Builder, target: Continuation) -> Builder:
    """Store VmCont."""
    if isinstance(target, Ordinary):
        return _store_slice(_store_data(builder.store(0, 2), target), target.code)
    if isinstance(target, Envelope):
        return _store_data(builder.store(1, 2), target).store(0, 0, (_write(target.next),))
    if isinstance(target, Stop):
        return builder.store(8, 4).store(target.code & 0xFFFFFFFF, 32)
    if isinstance(target, StopWithError):
        return builder.store(9, 4)
    if isinstance(target, Repeat):
        refs = _write(target.body), _write(target.after)
        return builder.store(0x14, 5).store(target.count, 63, refs)
    if isinstance(target, Until):
        return builder.store(0x30, 6, (_write(target.body), _write(target.after)))
    if isinstance(target, Again):
        return builder.store(0x31, 6, (_write(target.body),))
    if isinstance(target, While):
        refs3 = _write(target.condition), _write(target.body), _write(target.after)
        return builder.store(0x32 | (not target.checks), 6, refs3)
    if isinstance(target, PushInteger):
        return builder.store(15, 4).store(target.value & 0xFFFFFFFF, 32, (_write(target.next),))
    raise TypeError(f"{type(target).__name__} is not a continuation")

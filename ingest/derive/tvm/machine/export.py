"""Writes stack values as cells: VmStack, VmStackValue, VmCont of ``block.tlb``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, MAX_DEPTH, Builder, Cell, Slice
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
from tonlake.ingest.derive.tvm.machine.fault import CELL_OVERFLOW, VmError
from tonlake.ingest.derive.tvm.machine.state import Nan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TINY = 1 << 63
_SAVE_BITS = 4


def write_stack(values: Sequence[Any]) -> Cell:
    """Return VmStack of values, deepest first; raise VmError if it is too deep for cells."""
    return _Writer().stack(Builder(), values).cell()


def write_value(value: Any) -> Cell:  # noqa: ANN401 - a stack value
    """Return VmStackValue of a value; raise VmError if it is too deep for cells."""
    return _Writer().value(Builder(), value).cell()


class _Writer:
    """Writes values; equal tuples and continuations are written once, however often they recur."""

    def __init__(self) -> None:
        self._written: dict[int, Builder] = {}
        self._nesting = 0

    def stack(self, builder: Builder, values: Sequence[Any]) -> Builder:
        """Store VmStack: the depth, then the top value and a reference to those below it."""
        builder = builder.store(len(values), 24)
        if not values:
            return builder
        rest = EMPTY_CELL
        for value in values[:-1]:
            rest = self.value(Builder(0, 0, (rest,)), value).cell()
        return self.value(builder.store(0, 0, (rest,)), values[-1])

    def value(self, builder: Builder, value: Any) -> Builder:  # noqa: ANN401 - a stack value
        """Store VmStackValue."""
        write = _SIMPLE.get(value.__class__)
        if write is not None:
            return write(builder, value)
        part = self._written.get(id(value))
        if part is None:
            self._nesting += 1
            if self._nesting > MAX_DEPTH:
                raise VmError(CELL_OVERFLOW)
            part = self._nested(value)
            self._nesting -= 1
            self._written[id(value)] = part
        return builder.store(part.value, part.bits, part.refs)

    def _nested(self, value: Any) -> Builder:  # noqa: ANN401 - a tuple or a continuation
        if value.__class__ is tuple:
            return self._tuple(value)
        return self.continuation(Builder().store(6, 8), value)

    def _tuple(self, values: tuple[Any, ...]) -> Builder:
        """Write a tuple: its length, the values before the last one, the last one."""
        cells = [self.value(Builder(), value).cell() for value in values]
        head: tuple[Cell, ...] = ()
        for place, cell in enumerate(cells):
            if place > 1:  # the values so far in a cell of their own
                head = (Builder(0, 0, head).cell(),)
            head = (*head, cell)
        return Builder().store(7 << 16 | len(values), 24, head)

    def _data(self, builder: Builder, data: Data) -> Builder:
        """Store VmControlData: number of arguments, stack, saved registers, codepage."""
        if data.nargs < 0:
            builder = builder.store(0, 1)
        else:
            builder = builder.store(1 << 13 | data.nargs & 0x1FFF, 14)
        if data.stack is None:
            builder = builder.store(0, 1)
        else:
            builder = self.stack(builder.store(1, 1), data.stack)
        saved = sorted(data.save.items())
        entries = [(number, self.value(Builder(), value)) for number, value in saved]
        refs = (_make_map(entries, _SAVE_BITS),) if entries else ()
        builder = builder.store(len(refs), 1, refs)
        if data.cp is None:
            return builder.store(0, 1)
        return builder.store(1 << 16 | data.cp & 0xFFFF, 17)

    def continuation(self, builder: Builder, target: Continuation) -> Builder:
        """Store VmCont."""
        if isinstance(target, Ordinary):
            return _store_slice(self._data(builder.store(0, 2), target), target.code)
        if isinstance(target, Envelope):
            return self._data(builder.store(1, 2), target).store(0, 0, self._refs(target.next))
        if isinstance(target, Stop):
            return builder.store(8, 4).store(target.code & 0xFFFFFFFF, 32)
        if isinstance(target, StopWithError):
            return builder.store(9, 4)
        if isinstance(target, PushInteger):
            refs = self._refs(target.next)
            return builder.store(15, 4).store(target.value & 0xFFFFFFFF, 32, refs)
        return self._loop(builder, target)

    def _loop(self, builder: Builder, target: Continuation) -> Builder:
        if isinstance(target, Repeat):
            refs = self._refs(target.body, target.after)
            return builder.store(0x14, 5).store(target.count, 63, refs)
        if isinstance(target, Until):
            return builder.store(0x30, 6, self._refs(target.body, target.after))
        if isinstance(target, Again):
            return builder.store(0x31, 6, self._refs(target.body))
        if isinstance(target, While):
            refs = self._refs(target.condition, target.body, target.after)
            return builder.store(0x32 | (not target.checks), 6, refs)
        raise TypeError(f"{type(target).__name__} is not a continuation")

    def _refs(self, *targets: Continuation) -> tuple[Cell, ...]:
        return tuple(self.continuation(Builder(), target).cell() for target in targets)


def _store_int(builder: Builder, value: int) -> Builder:
    if -_TINY <= value < _TINY:
        return builder.store(1, 8).store(value & 2 * _TINY - 1, 64)
    return builder.store(0x0200 >> 1, 15).store(value & (1 << 257) - 1, 257)


def _store_slice(builder: Builder, part: Slice) -> Builder:
    """Store VmCellSlice."""
    bounds = (part.start << 10 | part.end) << 6 | part.ref << 3 | part.ref_end
    return builder.store(bounds, 26, (part.cell,))


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


_SIMPLE: dict[type, Callable[[Builder, Any], Builder]] = {
    type(None): lambda builder, _null: builder.store(0, 8),
    Nan: lambda builder, _nan: builder.store(0x02FF, 16),
    int: _store_int,
    Cell: lambda builder, cell: builder.store(3, 8, (cell,)),
    Slice: lambda builder, part: _store_slice(builder.store(4, 8), part),
    Builder: lambda builder, value: builder.store(5, 8, (value.cell(),)),
}
"""Writers of values that hold no others."""

"""Writes and reads stacks as cells: VmStack, VmStackValue, VmCont of ``block.tlb``."""

from collections.abc import Callable, Sequence
from typing import Any

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import MAX_DEPTH, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import INTEGER_BITS, StackLimits, StackValue, TvmOpaque
from tonlake.ingest.derive.tvm.machine.cell import EMPTY_CELL, Builder, Cell, Slice, Source, plant
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
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.run import StackExporter, enter_value
from tonlake.ingest.derive.tvm.machine.state import NAN, Nan
from tonlake.ingest.errors import BocError

_TINY_LIMIT = 1 << 63
_SAVE_BITS = 4
_CONTINUED = Builder(6, 8)
"""The head of a continuation."""


def build_stack(values: Sequence[Any]) -> Cell:
    """Return VmStack of values, deepest first; raise VmError if it is too deep for cells."""
    return _Writer().stack(Builder(), values).cell()


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
                raise VmError(Exit.CELL_OVERFLOW)
            is_tuple = value.__class__ is tuple
            part = self._tuple(value) if is_tuple else self.continuation(_CONTINUED, value)
            self._nesting -= 1
            self._written[id(value)] = part
        return builder.store(part.value, part.bits, part.refs)

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
    if -_TINY_LIMIT <= value < _TINY_LIMIT:
        return builder.store(1, 8).store(value & 2 * _TINY_LIMIT - 1, 64)
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


_NULL, _TINY, _INTEGER, _CELL, _SLICE, _BUILDER, _CONTINUATION, _TUPLE = range(8)
_DEPTH_BITS, _TINY_BITS, _NAN = 24, 64, 0x7F
_PAIR = 2


def write_stack(values: Sequence[StackValue]) -> bytes:
    """Return a stack, deepest value first, as a bag; raise TypeError or BocError for others."""
    return _write(values, build_stack)


def write_value(value: StackValue) -> bytes:
    """Return a value as a bag of VmStackValue; raise as ``write_stack``."""
    return _write([value], lambda entered: _Writer().value(Builder(), *entered).cell())


def _write(values: Sequence[StackValue], write: Callable[[list[Any]], Cell]) -> bytes:
    try:
        tree, root = plant(write([*map(enter_value, values)]))
    except VmError as error:
        raise BocError("the values are nested too deeply for cells") from error
    return serialize_boc(tree, [root])


def read_stack(boc: bytes, limits: StackLimits) -> tuple[StackValue, ...]:
    """Return a stack, deepest value first; raise BocError, TvmStackDeep or TvmStackLarge."""
    tree = parse_boc(boc)
    return StackExporter(limits).read(_Reader(tree).stack(tree.slice(tree.roots[0])))


class _Reader:
    """Reads a stack into values of the machine; a cell that recurs is read once."""

    def __init__(self, tree: CellTree) -> None:
        self._source = Source(tree)
        self._known: dict[int, Any] = {}

    def stack(self, start: CellSlice) -> list[Any]:
        values = []
        for _ in range(start.load_uint(_DEPTH_BITS)):
            rest = start.tree.slice(start.load_ref())
            values.append(self._value(start))
            start = rest
        return values[::-1]

    def _cell(self, place: int) -> Any:  # noqa: ANN401 - a stack value
        if place not in self._known:
            self._known[place] = self._value(self._source.tree.slice(place))
        return self._known[place]

    def _value(self, start: CellSlice) -> Any:  # noqa: ANN401, PLR0911 - a stack value
        kind = start.load_uint(8)
        if kind == _NULL:
            return None
        if kind == _TINY:
            return start.load_int(_TINY_BITS)
        if kind == _INTEGER:
            return NAN if start.load_uint(7) == _NAN else start.load_int(INTEGER_BITS)
        if kind == _TUPLE:
            return tuple(map(self._cell, _list_items(start)))
        if kind == _CONTINUATION:
            return TvmOpaque()
        if kind not in (_CELL, _SLICE, _BUILDER):
            raise BocError(f"a stack value has the unknown kind {kind:#04x}")
        cell = self._source.cell(start.load_ref())
        if kind == _SLICE:
            return _cut(cell, *(start.load_uint(bits) for bits in (10, 10, 3, 3)))
        return cell if kind == _CELL else Builder(cell.value, cell.bits, cell.refs)


def _cut(cell: Cell, first: int, last: int, first_ref: int, last_ref: int) -> Slice:
    """Return the part of a cell that vm_stk_slice names."""
    if not (first <= last <= cell.bits and first_ref <= last_ref <= len(cell.refs)):
        raise BocError("a slice on the stack ends beyond its cell")
    return Slice(cell, first, last, first_ref, last_ref)


def _list_items(start: CellSlice) -> list[int]:
    """Return the cells of a tuple's values: VmTuple ends in its last value."""
    cells: list[int] = []
    for left in range(start.load_uint(16), 0, -1):
        head = start.load_ref() if left > 1 else None
        cells.append(start.load_ref())
        if head is not None and left == _PAIR:  # vm_tupref_single
            cells.append(head)
            break
        if head is not None:
            start = start.tree.slice(head)
    return cells[::-1]

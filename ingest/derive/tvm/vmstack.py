"""Reads and writes whole stacks as cells: VmStack of ``crypto/block/block.tlb``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.machine import export
from tonlake.ingest.derive.tvm.machine.cell import plant
from tonlake.ingest.derive.tvm.machine.fault import VmError
from tonlake.ingest.derive.tvm.machine.run import enter_stack
from tonlake.ingest.derive.tvm.stack import (
    INTEGER_BITS,
    StackLimits,
    StackValue,
    TvmBuilder,
    TvmCell,
    TvmNan,
    TvmOpaque,
    TvmSlice,
)
from tonlake.ingest.errors import BocError, TvmStackDeep, TvmStackLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.derive.tvm.machine.cell import Cell

_NULL, _TINY, _INTEGER, _CELL, _SLICE, _BUILDER, _CONTINUATION, _TUPLE = range(8)
_DEPTH_BITS, _TINY_BITS, _NAN = 24, 64, 0x7F
_PAIR = 2


def write_stack(values: Sequence[StackValue]) -> bytes:
    """Return a stack, deepest value first, as a bag.

    Raises:
        TypeError: values of its type have no cells.
        BocError: it is nested too deeply for cells, or has a bag that is none.
    """
    return _write(values, export.write_stack)


def write_value(value: StackValue) -> bytes:
    """Return a value as a bag of VmStackValue; raise as ``write_stack``."""
    return _write([value], lambda entered: export.write_value(*entered))


def _write(values: Sequence[StackValue], write: Callable[[list[Any]], Cell]) -> bytes:
    try:
        tree, root = plant(write(enter_stack(values)))
    except VmError as error:
        raise BocError("the values are nested too deeply for cells") from error
    return serialize_boc(tree, [root])


def read_stack(boc: bytes, limits: StackLimits) -> tuple[StackValue, ...]:
    """Return the values of a stack, deepest first.

    Raises:
        BocError: it is not a VmStack.
        TvmStackDeep, TvmStackLarge: it exceeds the limits.
    """
    tree = parse_boc(boc)
    return _Reader(tree, limits).read(tree.slice(tree.roots[0]))


class _Reader:
    """Reads a stack within limits: shared values are written out each time."""

    def __init__(self, tree: CellTree, limits: StackLimits) -> None:
        self._tree, self._limits = tree, limits
        self._entries_left = limits.entries
        self._bytes_left = limits.boc_bytes

    def read(self, start: CellSlice) -> tuple[StackValue, ...]:
        count = start.load_uint(_DEPTH_BITS)
        if count > self._entries_left:
            raise TvmStackLarge(f"the stack has {count} entries")
        values = []
        for _ in range(count):
            rest = self._tree.slice(start.load_ref())
            values.append(self._value(start, 0))
            start = rest
        return tuple(reversed(values))

    def _value(self, start: CellSlice, depth: int) -> StackValue:
        self._entries_left -= 1
        if self._entries_left < 0:
            raise TvmStackLarge(f"the stack has more than {self._limits.entries} values")
        kind = start.load_uint(8)
        if kind == _NULL:
            return None
        if kind == _TINY:
            return start.load_int(_TINY_BITS)
        if kind == _INTEGER:
            if start.load_uint(7) == _NAN:
                start.load_bit()
                return TvmNan()
            return start.load_int(INTEGER_BITS)
        if kind == _TUPLE:
            return self._tuple(self._list_items(start), depth + 1)
        return self._cells(kind, start)

    def _cells(self, kind: int, start: CellSlice) -> StackValue:
        """Read a value that consists of cells."""
        if kind == _CELL:
            return TvmCell(self._bag(start.load_ref()))
        if kind == _SLICE:
            return TvmSlice(self._bag(self._cut(start)))
        if kind == _BUILDER:
            return TvmBuilder(self._bag(start.load_ref()))
        if kind == _CONTINUATION:
            return TvmOpaque()
        raise BocError(f"a stack value has the unknown kind {kind:#04x}")

    def _cut(self, start: CellSlice) -> int:
        """Return a cell with the part that vm_stk_slice names: bit and reference ends."""
        part = self._tree.slice(start.load_ref())
        first, last = start.load_uint(10), start.load_uint(10)
        first_ref, last_ref = start.load_uint(3), start.load_uint(3)
        part.skip(first)
        builder = CellBuilder(self._tree).store_uint(part.load_uint(last - first), last - first)
        refs = [part.load_ref() for _ in range(part.refs_left)]
        for child in refs[first_ref:last_ref]:
            builder.store_ref(child)
        return builder.end()

    def _list_items(self, start: CellSlice) -> list[int]:
        """Return the cells of a tuple's values: VmTuple ends in its last value."""
        count = start.load_uint(16)
        cells: list[int] = []
        for left in range(count, 0, -1):
            head = start.load_ref() if left > 1 else None
            cells.append(start.load_ref())
            if head is not None and left == _PAIR:  # vm_tupref_single
                cells.append(head)
                break
            if head is not None:
                start = self._tree.slice(head)
        return cells[::-1]

    def _tuple(self, cells: list[int], depth: int) -> StackValue:
        """Read a tuple, or a list if the tuple is its first pair."""
        self._check_depth(depth)
        if len(cells) != _PAIR:
            return tuple(self._value(self._tree.slice(cell), depth) for cell in cells)
        spine = [cells[0]]
        tail = self._tree.slice(cells[1])
        while len(pair := self._peek_pair(tail)) == _PAIR:
            spine.append(pair[0])
            tail = self._tree.slice(pair[1])
            if len(spine) > self._entries_left:
                raise TvmStackLarge(f"a list on the stack has more than {len(spine) - 1} values")
        if tail.peek_uint(8) == _NULL:
            return [self._value(self._tree.slice(cell), depth) for cell in spine]
        self._check_depth(depth + len(spine) - 1)
        read = self._value(tail, depth + len(spine) - 1)
        for place in range(len(spine) - 1, -1, -1):
            read = (self._value(self._tree.slice(spine[place]), depth + place), read)
        return read

    def _peek_pair(self, start: CellSlice) -> list[int]:
        """Return the cells of a tuple's values, or [] for anything else."""
        ahead = start.copy()
        return self._list_items(ahead) if ahead.load_uint(8) == _TUPLE else []

    def _check_depth(self, depth: int) -> None:
        if depth >= self._limits.depth:
            raise TvmStackDeep(f"the stack is nested {depth} levels deep")

    def _bag(self, cell: int) -> bytes:
        """Return a cell as a canonical bag with checksum, the form of all returned bags."""
        boc = serialize_boc(self._tree, [cell], crc32c=True)
        self._bytes_left -= len(boc)
        if self._bytes_left < 0:
            raise TvmStackLarge(f"cells of the stack have over {self._limits.boc_bytes} bytes")
        return boc

"""Builds cells: bits and references are stored one after another, then the cell is appended."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from secrets import randbits
from typing import Self, TypeAlias

from tonlake.ingest.decode.cell.envelope import NATIVE
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT, CellSlice
from tonlake.ingest.decode.cell.tree import CellTree, exotic_mask
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError

Rest: TypeAlias = tuple[int, int, int]
"""The end of a cell: the cell, at most how many of its bits, and the number of its first reference.
"""

MAX_BITS = 1023
MAX_REFS = 4
_COINS_LENGTH_BITS = 4


class CellBuilder:
    """Collects bits and references of a new cell; BocError for a number that does not fit."""

    def __init__(self, tree: CellTree | None = None) -> None:
        self.tree = CellTree() if tree is None else tree
        self._value = 0
        self._bits = 0
        self._children: list[int] = []

    @property
    def bits(self) -> int:
        """Number of bits stored so far."""
        return self._bits

    def store_uint(self, value: int, bits: int) -> Self:
        """Store an unsigned integer in ``bits`` bits."""
        if value < 0 or value >> bits:
            raise BocError(f"{value} does not fit {bits} unsigned bits")
        self._value = self._value << bits | value
        self._bits += bits
        return self

    def store_int(self, value: int, bits: int) -> Self:
        """Store a signed integer (two's complement) in ``bits`` bits."""
        half = 1 << bits >> 1
        if not -half <= value < half:
            raise BocError(f"{value} does not fit {bits} signed bits")
        return self.store_uint(value & ((1 << bits) - 1), bits)

    def store_bit(self, bit: bool | int) -> Self:  # noqa: FBT001 - a bit is a value, no switch
        """Store one bit."""
        return self.store_uint(int(bit), 1)

    def store_bytes(self, data: bytes) -> Self:
        """Store bytes."""
        return self.store_uint(int.from_bytes(data, "big"), len(data) * 8)

    def store_var_uint(self, value: int, length_bits: int) -> Self:
        """Store VarUInteger n in the fewest bytes; its length field has ``length_bits`` bits."""
        count = (value.bit_length() + 7) // 8
        return self.store_uint(count, length_bits).store_uint(value, count * 8)

    def store_coins(self, value: int) -> Self:
        """Store Grams (VarUInteger 16), in nanoton."""
        return self.store_var_uint(value, _COINS_LENGTH_BITS)

    def store_ref(self, cell: int) -> Self:
        """Store a reference to a cell of the same tree."""
        self._children.append(cell)
        return self

    def store_maybe_ref(self, cell: int | None) -> Self:
        """Store ``Maybe ^X``: a bit and, unless ``cell`` is None, a reference."""
        return self.store_bit(0) if cell is None else self.store_bit(1).store_ref(cell)

    def store_slice(self, rest: CellSlice) -> Self:
        """Store the rest of a slice of the same tree without advancing it."""
        if rest.tree is not self.tree:
            raise BocError("a slice of another tree cannot be stored")
        self._children += self.tree.links[rest.cell][rest.ref :]
        return self.store_uint(rest.peek_uint(rest.bits_left), rest.bits_left)

    def end(self, *, exotic: bool = False) -> int:
        """Append the cell to the tree and return its index."""
        if self._bits > MAX_BITS or len(self._children) > MAX_REFS:
            raise BocError(f"cell of {self._bits} bits and {len(self._children)} references")
        return append_cell(self.tree, self._value, self._bits, tuple(self._children), exotic=exotic)


def append_cell(
    tree: CellTree, value: int, bits: int, children: tuple[int, ...], *, exotic: bool = False
) -> int:
    """Append a cell with data ``value`` of ``bits`` bits and these children; return its index."""
    return tree.append(make_head(tree, value, bits, children, exotic=exotic), children)


def make_head(
    tree: CellTree, value: int, bits: int, children: tuple[int, ...], *, exotic: bool = False
) -> bytes:
    """Return d1, d2 and data of such a cell; raise BocError for an invalid exotic one."""
    head = pack_head(len(children) | (EXOTIC_BIT if exotic else 0), value, bits)
    masks = [tree.level_mask(child) for child in children]
    mask = exotic_mask(head, masks) if exotic else reduce(or_, masks, 0)
    return bytes((head[0] | mask << 5,)) + head[1:] if mask else head


def serialize_rests(tree: CellTree, rests: Sequence[Rest]) -> list[bytes]:
    """Return the bags of the ends of cells, each as a cell of its own."""
    bags: list[bytes] | None = None
    if NATIVE is not None and tree.data:
        bags = NATIVE.bags(tree.data, rests, randbits(64))
    return [serialize_boc(tree, [_cut(tree, *rest)]) for rest in rests] if bags is None else bags


def _cut(tree: CellTree, cell: int, bits: int, ref: int) -> int:
    if not ref and bits >= tree.bit_length(cell):
        return cell
    value = tree.slice(cell).value & (1 << bits) - 1
    return append_cell(tree, value, bits, tree.links[cell][ref:])


def graft(tree: CellTree, source: CellTree) -> int:
    """Copy the first root of another tree into ``tree``; return its index there."""
    return graft_cell(tree, source, source.roots[0])


def graft_cell(target: CellTree, source: CellTree, root: int) -> int:
    """Copy a cell and all its descendants into another tree; return its index there."""
    planted: dict[int, int] = {}
    todo = [root]
    while todo:
        cell = todo[-1]
        missing = [child for child in source.links[cell] if child not in planted]
        if missing:
            todo += missing
            continue
        todo.pop()
        if cell not in planted:
            children = tuple(planted[child] for child in source.links[cell])
            planted[cell] = target.append(source.cells[cell], children)
    return planted[root]


def pack_head(d1: int, value: int, bits: int) -> bytes:
    """Return d1, d2 and data of a cell with data ``value`` of ``bits`` bits, completed."""
    count, rest = divmod(bits, 8)
    if not rest:
        return bytes((d1, count * 2)) + value.to_bytes(count, "big")
    padded = (value << 1 | 1) << (7 - rest)
    return bytes((d1, count * 2 + 1)) + padded.to_bytes(count + 1, "big")

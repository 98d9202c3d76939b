"""Cells, slices and builders of the machine.

They differ from those of ``decode.cell``, which live in the arrays of one tree: a run mixes cells
of code, data, configuration and libraries with those that it builds, and loads few of them. A cell
of a tree is read when it is first used.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tonlake.ingest.decode.cell.build import MAX_BITS, MAX_REFS, make_head, pack_head
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT
from tonlake.ingest.decode.cell.tree import (
    LIBRARY,
    MAX_DEPTH,
    MAX_LEVEL,
    ORDINARY,
    CellTree,
    Digests,
    exotic_mask,
)
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.errors import BocError


class Cell:
    """An immutable cell: ``value`` holds its ``bits`` bits, ``refs`` its children.

    ``blocks`` caches the decoded instructions of parts of the cell (module ``code``), ``digests``
    the hashes at all levels of a built cell that is exotic or above a pruned branch.
    """

    __slots__ = ("_origin", "_place", "bits", "blocks", "depth", "digests", "hash", "mask", "refs",
                 "special", "value")  # fmt: skip

    value: int
    bits: int
    refs: tuple[Cell, ...]
    special: bool
    mask: int
    hash: bytes
    depth: int
    _origin: Source | None
    _place: int
    blocks: dict[tuple[int, int, int, int], list[Any]]
    digests: _Digests

    def __init__(self, value: int, bits: int, refs: tuple[Cell, ...] = ()) -> None:
        self.value = value
        self.bits = bits
        self.refs = refs
        self.special = False
        mask = 0
        for child in refs:
            mask |= child.mask
        self.mask = mask

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the type of the attribute
        """Read a cell of a tree, or compute what was not needed so far."""
        if name == "blocks":
            self.blocks = {}
        elif name in ("hash", "depth"):
            self._compute()
        elif name == "digests":
            self.digests = _Digests(self)
        elif name in ("_origin", "_place"):
            return None
        elif self._origin is not None:
            self._origin.read(self, self._place)
        return getattr(self, name)

    def _compute(self) -> None:
        if self._origin is not None:
            self.hash = self._origin.tree.hash(self._place)
            self.depth = self._origin.tree.depth(self._place)
        elif self.mask or self.special:
            self.hash, self.depth = self.digests.at(0, MAX_LEVEL)
        else:
            refs = self.refs
            self.depth = 1 + max((child.depth for child in refs), default=-1)
            parts = [pack_head(len(refs), self.value, self.bits)]
            parts += [child.depth.to_bytes(2, "big") for child in refs]
            parts += [child.hash for child in refs]
            self.hash = sha256(b"".join(parts)).digest()

    def level_hash(self, level: int) -> tuple[bytes, int]:
        """Return hash and depth at a level, 0 to 3."""
        if not self.mask:
            return self.hash, self.depth
        if self._origin is None:
            return self.digests.at(0, level)
        tree, place = self._origin.tree, self._place
        return tree.hash(place, level), tree.depth(place, level)

    @property
    def level(self) -> int:
        """The level: that of the highest pruned branch below, 0 to 3."""
        return self.mask.bit_length()

    @property
    def library(self) -> bytes | None:
        """The hash in a library cell; None for any other cell."""
        if not self.special or self.value >> self.bits - 8 != LIBRARY:
            return None
        return (self.value & (1 << self.bits - 8) - 1).to_bytes(32, "big")

    def slice(self) -> Slice:
        """Return the whole cell as a slice."""
        return Slice(self, 0, self.bits, 0, len(self.refs))

    @property
    def origin(self) -> tuple[CellTree, int] | None:
        """The tree that the cell was read from and its index there; None for a built cell."""
        return None if self._origin is None else (self._origin.tree, self._place)


class _Digests(Digests):
    """The digests of one cell, computed from those of its children."""

    __slots__ = ("_refs",)

    def __init__(self, cell: Cell) -> None:
        """Raise BocError if the cell is invalid."""
        self._refs = refs = cell.refs
        head = pack_head(len(refs) | EXOTIC_BIT * cell.special, cell.value, cell.bits)
        if cell.special:
            cell.mask = exotic_mask(head, [child.mask for child in refs])
        head = bytes((head[0] | cell.mask << 5,)) + head[1:]
        depth = 1 + max((child.depth for child in refs), default=-1)
        super().__init__([head], [tuple(range(1, len(refs) + 1))], [depth])
        self.fill((0,))
        if max(self.at(0, level)[1] for level in range(MAX_LEVEL)) > MAX_DEPTH:
            raise BocError(f"pruned branch of a tree deeper than {MAX_DEPTH}")

    def at(self, cell: int, level: int) -> tuple[bytes, int]:
        """Return the hash and the depth at a level of the cell, 0, or of a child, 1 to 4."""
        return self._refs[cell - 1].level_hash(level) if cell else super().at(cell, level)


class Source:
    """A tree whose cells are read as they are used; each has one ``Cell``."""

    __slots__ = ("_cells", "tree")

    def __init__(self, tree: CellTree) -> None:
        """Read from ``tree``, which may grow but must not change."""
        self.tree = tree
        self._cells: dict[int, Cell] = {}

    def cell(self, place: int) -> Cell:
        """Return the cell with an index."""
        found = self._cells.get(place)
        if found is None:
            found = self._cells[place] = Cell.__new__(Cell)
            found._origin, found._place = self, place  # noqa: SLF001 - of the same module
        return found

    def read(self, cell: Cell, place: int) -> None:
        """Set what a cell has; children are read later."""
        tree = self.tree
        cell.special = tree.kind(place) != ORDINARY
        if cell.special:
            payload = tree.payload(place)
            cell.value, cell.bits = int.from_bytes(payload, "big"), len(payload) * 8
        else:
            cell.value, cell.bits = tree.bits(place)
        cell.mask = tree.level_mask(place)
        cell.refs = tuple(map(self.cell, tree.links[place]))


def plant(root: Cell) -> tuple[CellTree, int]:
    """Return a tree of a cell and all below it, and the cell's index there.

    Equal cells become one. Raises BocError for an invalid exotic cell.
    """
    tree = CellTree()
    planted: dict[int, int] = {}
    by_content: dict[tuple[bytes, tuple[int, ...]], int] = {}
    todo = [root]
    while todo:
        cell = todo[-1]
        missing = [child for child in cell.refs if id(child) not in planted]
        if missing:
            todo += missing
            continue
        todo.pop()
        if id(cell) in planted:
            continue
        children = tuple(planted[id(child)] for child in cell.refs)
        head = make_head(tree, cell.value, cell.bits, children, exotic=cell.special)
        place = by_content.get((head, children))
        if place is None:
            place = by_content[head, children] = tree.append(head, children)
        planted[id(cell)] = place
    return tree, planted[id(root)]


@dataclass(slots=True, eq=False)
class Slice:
    """A part of a cell, immutable: bits ``start`` to ``end``, references ``ref`` to ``ref_end``."""

    cell: Cell
    start: int
    end: int
    ref: int
    ref_end: int

    @property
    def bits(self) -> int:
        """Number of bits."""
        return self.end - self.start

    @property
    def ref_count(self) -> int:
        """Number of references."""
        return self.ref_end - self.ref

    @property
    def refs(self) -> tuple[Cell, ...]:
        """The references."""
        return self.cell.refs[self.ref : self.ref_end]

    def uint(self) -> int:
        """Return all bits as one number."""
        cell = self.cell
        return cell.value >> cell.bits - self.end & (1 << self.end - self.start) - 1

    def peek(self, bits: int) -> int:
        """Return the first ``bits`` bits as a number; raise VmError if there are fewer."""
        end = self.start + bits
        if end > self.end:
            raise VmError(Exit.CELL_UNDERFLOW)
        cell = self.cell
        return cell.value >> cell.bits - end & (1 << bits) - 1

    def has(self, bits: int, refs: int = 0) -> bool:
        """Return whether at least ``bits`` bits and ``refs`` references are left."""
        return self.end - self.start >= bits and self.ref_end - self.ref >= refs

    def skip(self, bits: int, refs: int = 0) -> Slice:
        """Return the slice without its first bits and references; raise VmError beyond its end."""
        start, ref = self.start + bits, self.ref + refs
        if start > self.end or ref > self.ref_end:
            raise VmError(Exit.CELL_UNDERFLOW)
        return Slice(self.cell, start, self.end, ref, self.ref_end)

    def take(self, bits: int, refs: int = 0) -> Slice:
        """Return the first bits and references; raise VmError if there are fewer."""
        end, ref_end = self.start + bits, self.ref + refs
        if end > self.end or ref_end > self.ref_end:
            raise VmError(Exit.CELL_UNDERFLOW)
        return Slice(self.cell, self.start, end, self.ref, ref_end)

    def child(self, place: int = 0) -> Cell:
        """Return a reference; raise VmError if there are fewer."""
        if self.ref + place >= self.ref_end:
            raise VmError(Exit.CELL_UNDERFLOW)
        return self.cell.refs[self.ref + place]


class Loader:
    """Reads a slice from its beginning; every method raises VmError beyond its end."""

    __slots__ = ("cell", "end", "ref", "ref_end", "start")

    def __init__(self, part: Slice) -> None:
        self.cell = part.cell
        self.start, self.end = part.start, part.end
        self.ref, self.ref_end = part.ref, part.ref_end

    def rest(self) -> Slice:
        """Return what is not read yet."""
        return Slice(self.cell, self.start, self.end, self.ref, self.ref_end)

    def uint(self, bits: int) -> int:
        """Read a number."""
        start = self.start + bits
        if start > self.end:
            raise VmError(Exit.CELL_UNDERFLOW)
        self.start = start
        return self.cell.value >> self.cell.bits - start & (1 << bits) - 1

    def sint(self, bits: int) -> int:
        """Read a number in two's complement."""
        value = self.uint(bits)
        return value - (value >> bits - 1 << bits)

    def child(self) -> Cell:
        """Read a reference."""
        return self.part(0, 1).child()

    def part(self, bits: int, refs: int = 0) -> Slice:
        """Read bits and references."""
        start, ref = self.start, self.ref
        if start + bits > self.end or ref + refs > self.ref_end:
            raise VmError(Exit.CELL_UNDERFLOW)
        self.start, self.ref = start + bits, ref + refs
        return Slice(self.cell, start, self.start, ref, self.ref)


@dataclass(slots=True, eq=False)
class Builder:
    """An immutable builder: the bits stored so far as one number, their count, the references."""

    value: int = 0
    bits: int = 0
    refs: tuple[Cell, ...] = ()

    def fits(self, bits: int, refs: int = 0) -> bool:
        """Return whether ``bits`` more bits and ``refs`` more references have room."""
        return self.bits + bits <= MAX_BITS and len(self.refs) + refs <= MAX_REFS

    def store(self, value: int, bits: int, refs: tuple[Cell, ...] = ()) -> Builder:
        """Return the builder with bits and references appended; raise VmError beyond the limits."""
        total, children = self.bits + bits, self.refs + refs
        if total > MAX_BITS or len(children) > MAX_REFS:
            raise VmError(Exit.CELL_OVERFLOW)
        return Builder(self.value << bits | value, total, children)

    def store_slice(self, part: Slice) -> Builder:
        """Return the builder with a slice appended."""
        return self.store(part.uint(), part.end - part.start, part.refs)

    def cell(self, *, special: bool = False) -> Cell:
        """Return the finished cell; raise VmError (cell overflow) if it is too deep or invalid."""
        made = Cell(self.value, self.bits, self.refs)
        if special or made.mask:
            made.special = special
            try:
                made.digests  # noqa: B018 - computes and checks them
            except BocError as error:
                raise VmError(Exit.CELL_OVERFLOW) from error
        elif self.refs and 1 + max(child.depth for child in self.refs) > MAX_DEPTH:
            raise VmError(Exit.CELL_OVERFLOW)
        return made


EMPTY_CELL = Cell(0, 0)

"""Represents cells as flat arrays: a cell is its index, and its children come after it.

There is no object per cell and no recursion: checks and hashes iterate over the arrays from the
last cell to the first. Hashes of all cells are computed on first use (module ``digest``), or only
under the requested cells if the bytes are known to be right (``trust``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.digest import MAX_DEPTH, Digests
from tonlake.ingest.decode.cell.exotic import HASH_BYTES, KIND_NAMES, ORDINARY, PRUNED, exotic_mask
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.errors import BocError
from tonlake.lake.native import load_extension

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.ingest.decode.cell.writer import Plan


NATIVE, _reason = load_extension("tonlake.ingest.decode._core")
"""The C extension, which parses and hashes whole bags but declines rare or damaged ones; None if it
was not built."""

_EXOTIC_BIT = 8
# Bits of the data from the completion tag on, by the last byte.
_TAG_BITS = [(last & -last).bit_length() for last in range(256)]
_from_bytes = int.from_bytes


def read_bits(head: bytes) -> tuple[int, int]:
    """Return the data of an ordinary cell as an integer, and its number of bits."""
    if head[0] & _EXOTIC_BIT:
        name = KIND_NAMES[head[2]]
        raise BocError(f"expected an ordinary cell, found a {name} cell")
    if not head[1] & 1:
        return _from_bytes(head[2:], "big"), head[1] << 2
    tag = _TAG_BITS[head[-1]]
    return _from_bytes(head[2:], "big") >> tag, (len(head) - 2 << 3) - tag


def count_bits(head: bytes) -> int:
    """Return the number of data bits of a cell."""
    if not head[1] & 1:
        return head[1] << 2
    return (len(head) - 2 << 3) - _TAG_BITS[head[-1]]


MAX_LEVEL = 3
_NOT_MEASURED = 1 << 16
# A pruned branch of one level, with 36 bytes of data: the most common exotic cell.
_PRUNED_ONCE = bytes((0x28, 72, PRUNED, 1))


class CellTree:
    """A parsed bag of cells, to which further cells can be appended.

    ``cells`` has d1, d2 and data of each cell (without in-cell hashes), ``links`` the indices of
    its children; ``roots`` are the roots of the bag; ``data`` the bytes that were parsed. ``plans``
    cache how bags of a shape are written (module ``writer``).
    """

    __slots__ = (
        "_depths",
        "_digests",
        "_is_trusted",
        "_parsed",
        "cells",
        "data",
        "links",
        "plans",
        "roots",
        "stored_hashes",
    )

    def __init__(self) -> None:
        """Create a tree without cells."""
        self.data = b""
        self.roots: list[int] = []
        self.cells: list[bytes] = []
        self.links: list[tuple[int, ...]] = []
        self.stored_hashes: dict[int, bytes] = {}
        self._depths: list[int] = []
        self._digests: Digests | None = None
        self._is_trusted = False
        self.plans: dict[bytes, Plan] = {}
        self._parsed = 0

    @property
    def count(self) -> int:
        """Number of cells, including appended ones."""
        return len(self.cells)

    def refs(self, cell: int) -> Sequence[int]:
        """Return the children of a cell."""
        return self.links[cell]

    def bit_length(self, cell: int) -> int:
        """Return the number of data bits of a cell."""
        return count_bits(self.cells[cell])

    def bits(self, cell: int) -> tuple[int, int]:
        """Return the data of an ordinary cell as an integer, and its number of bits."""
        return read_bits(self.cells[cell])

    def payload(self, cell: int) -> bytes:
        """Return the data bytes of any cell, including the completion tag."""
        return self.cells[cell][2:]

    def kind(self, cell: int) -> int:
        """Return ORDINARY, PRUNED, LIBRARY, MERKLE_PROOF or MERKLE_UPDATE."""
        head = self.cells[cell]
        return head[2] if head[0] & _EXOTIC_BIT else ORDINARY

    def level_mask(self, cell: int) -> int:
        """Return the level mask of a cell, 0 to 7."""
        return self.cells[cell][0] >> 5

    def slice(self, cell: int) -> CellSlice:
        """Return a slice at the start of an ordinary cell; raise BocError for an exotic one."""
        return CellSlice(self, cell)

    def trust(self) -> None:
        """Compute only requested hashes: the caller has verified a hash of all bytes."""
        self._is_trusted = True

    def hash(self, cell: int, level: int = MAX_LEVEL) -> bytes:
        """Return the hash of a cell at a level; 3 is the representation hash.

        Raises BocError if stored hashes differ from the computed ones.
        """
        digests = self._digests or self._make_digests()
        top = digests.tops[cell]
        if not top:
            digests.require((cell,))
            top = digests.tops[cell]
        return top if level >= MAX_LEVEL else digests.hash_at(cell, level)

    def hash_all(self, cells: Iterable[int]) -> None:
        """Compute the hashes of several cells at once, which is faster than one by one.

        Raises BocError as ``hash`` does.
        """
        (self._digests or self._make_digests()).require(cells)

    def pruned_hash(self, cell: int, level: int) -> bytes | None:
        """Return the hash that a pruned branch stores for a level; None for any other cell."""
        head = self.cells[cell]
        mask = head[0] >> 5
        if not mask >> level or not head[0] & _EXOTIC_BIT or head[2] != PRUNED:
            return None
        start = 4 + (mask & ((1 << level) - 1)).bit_count() * HASH_BYTES
        return head[start : start + HASH_BYTES]

    def depth(self, cell: int, level: int = MAX_LEVEL) -> int:
        """Return the depth of a cell at a level."""
        if level >= MAX_LEVEL:
            return self._depths[cell]
        self.hash(cell)
        return (self._digests or self._make_digests()).depth_at(cell, level)

    def all_hashes(self, cell: int) -> bytes:
        """Return hashes, then depths, of all levels, in the form stored in bags of cells."""
        self.hash(cell)
        return (self._digests or self._make_digests()).all_hashes(cell)

    def take_parsed(self, *, check_crc: bool) -> bool:
        """Parse ``data`` with the C extension; return False if it declines.

        It performs the checks of ``read_envelope`` and ``measure``.
        """
        found = None if NATIVE is None else NATIVE.parse(self.data, check_crc)
        if found is not None:
            root, (self.cells, self.links, self._depths), self.stored_hashes = found
            self.roots = [root]
            self._parsed = len(self.cells)
        return found is not None

    def _make_digests(self) -> Digests:
        """Create the digests; compute all unless the tree is trusted. Raise as ``hash`` does."""
        digests = Digests(self.cells, self.links, self._depths)
        if not self._is_trusted and not self._take_hashes(digests):
            digests.require_all()
            for cell, stored in self.stored_hashes.items():
                if digests.all_hashes(cell) != stored:
                    raise BocError(f"cell {cell} stores hashes that are not its own")
        self._digests = digests
        return digests

    def _take_hashes(self, digests: Digests) -> bool:
        """Compute the hashes of ``data`` with the C extension; return False if it declines."""
        if NATIVE is None or not self.data or len(self.cells) != self._parsed:
            return False
        found = NATIVE.hashes(self.data)
        if found is not None:
            digests.take(*found)
        return found is not None

    def is_distinct(self, cell: int) -> bool:
        """Return whether all cells under this one are known to differ."""
        self.hash(cell)
        parsed = self._parsed
        is_parsed = cell < parsed or all(child < parsed for child in self.links[cell])
        return is_parsed and self._digests is not None and self._digests.are_distinct

    def append(self, cell: bytes, children: tuple[int, ...] = ()) -> int:
        """Append a cell (d1, d2 and data) with children in this tree; return its index."""
        digests = self._digests or self._make_digests()
        index = len(self.cells)
        self.cells.append(cell)
        self.links.append(children)
        try:
            self._depths.append(self._measure_cell(index))
            digests.add()
        except BocError:
            for column in (self.cells, self.links, self._depths):
                del column[index:]
            raise
        return index

    def measure(self) -> None:
        """Check references, levels, depths and exotic cells of a tree just parsed."""
        self._parsed = len(self.cells)
        try:
            self._measure_parsed()
        except IndexError:
            for cell in range(self._parsed):
                self._check_references(cell)
            raise

    def _measure_parsed(self) -> None:
        """Implement ``measure``; IndexError means that a reference is out of range."""
        cells = self.cells
        links = self.links
        count = self._parsed
        # A valid reference points forward, to a measured cell; any other looks far too deep.
        depths = self._depths = [_NOT_MEASURED] * count
        descriptors = [head[0] for head in cells]
        for cell in range(count - 1, -1, -1):
            children = links[cell]
            d1 = descriptors[cell]
            if not children:
                depths[cell] = 0
                if d1 and cells[cell][:4] != _PRUNED_ONCE:
                    self._measure_cell(cell)
                continue
            depth = masks = 0
            for child in children:
                masks |= descriptors[child]
                if depths[child] >= depth:
                    depth = depths[child] + 1
            depths[cell] = depth
            if d1 & _EXOTIC_BIT or d1 >> 5 != masks >> 5 or depth > MAX_DEPTH:
                self._check_references(cell)
                self._measure_cell(cell)

    def _check_references(self, cell: int) -> None:
        """Raise BocError if a reference of a parsed cell does not point forward."""
        for child in self.links[cell]:
            if not cell < child < self._parsed:
                raise BocError(f"cell {cell} of {self._parsed} refers to cell {child}, not forward")

    def _measure_cell(self, cell: int) -> int:
        """Check level and kind of a cell whose children were checked; return its depth."""
        cells = self.cells
        depths = self._depths
        children = self.links[cell]
        d1 = cells[cell][0]
        depth = 0
        masks = 0
        for child in children:
            masks |= cells[child][0]
            if depths[child] >= depth:
                depth = depths[child] + 1
        mask = masks >> 5
        if d1 & _EXOTIC_BIT:
            mask = exotic_mask(cells[cell], [cells[child][0] >> 5 for child in children])
        if d1 >> 5 != mask:
            raise BocError(f"cell {cell} claims level mask {d1 >> 5}, but has {mask}")
        if depth > MAX_DEPTH:
            raise BocError(f"cell {cell} is the root of a tree deeper than {MAX_DEPTH}")
        return depth

"""Represents cells as flat arrays: a cell is its index, and its children come after it.

There is no object per cell and no recursion: checks and hashes iterate over the arrays from the
last cell to the first. Hashes of all cells are computed on first use, or only under the requested
cells if the bytes are known to be right (``trust``).

Levels follow the node's ``DataCell``: a cell with level mask *m* has popcount(m) + 1 hashes, and
at level *l* has the one with index popcount(m & (2^l - 1)). The first covers the data, each further
one the previous hash. Children of a Merkle proof or update count one level deeper. A pruned branch
stores all but its last hash in its data.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from tonlake.ingest.decode.cell.envelope import NATIVE
from tonlake.ingest.decode.cell.slice import EXOTIC_BIT, TAG_BITS, CellSlice
from tonlake.ingest.errors import BocError

ORDINARY = -1
PRUNED = 1
LIBRARY = 2
MERKLE_PROOF = 3
MERKLE_UPDATE = 4

KIND_NAMES = {
    ORDINARY: "ordinary",
    PRUNED: "pruned branch",
    LIBRARY: "library reference",
    MERKLE_PROOF: "Merkle proof",
    MERKLE_UPDATE: "Merkle update",
}

HASH_BYTES = 32
DEPTH_BYTES = 2
# Data bytes and references of the kinds whose shape is fixed.
_SHAPES = {
    LIBRARY: (1 + HASH_BYTES, 0),
    MERKLE_PROOF: (1 + HASH_BYTES + DEPTH_BYTES, 1),
    MERKLE_UPDATE: (1 + 2 * (HASH_BYTES + DEPTH_BYTES), 2),
}
_MAX_MASK = 7


def exotic_mask(cell: bytes, child_masks: Sequence[int]) -> int:
    """Check the shape of an exotic cell (d1, d2, data); return the level mask it must have."""
    size = len(cell) - 2
    if cell[1] & 1 or not size:
        raise BocError("exotic cell without a whole type byte")
    kind = cell[2]
    if kind == PRUNED:
        mask = cell[3] if size > 1 else 0
        expected = (2 + mask.bit_count() * (HASH_BYTES + DEPTH_BYTES), 0)
        if not 0 < mask <= _MAX_MASK:
            raise BocError(f"pruned branch with level mask {mask}")
    elif kind in _SHAPES:
        expected = _SHAPES[kind]
        mask = 0
        for child_mask in child_masks:
            mask |= child_mask >> 1
    else:
        raise BocError(f"exotic cell of unknown type {kind}")
    if (size, len(child_masks)) != expected:
        name = KIND_NAMES[kind]
        raise BocError(f"{name} with {size} data bytes and {len(child_masks)} references")
    return mask


MAX_DEPTH = 1024
"""Deepest tree the node accepts (``CellTraits::max_depth``)."""

# Highest first descriptor of an ordinary cell without levels.
_MAX_PLAIN_D1 = 4


class Digests:
    """The hashes and depths of the cells of one tree, parallel to its arrays.

    ``tops`` are the representation hashes, ``bottoms`` the hashes at level 0; ``depths`` and
    ``shallows`` are the corresponding depths. Hashes in between are rare and in a dict. An empty
    top means that the digests of a cell are not computed yet; ``require`` computes them.
    """

    __slots__ = ("_cells", "_links", "_middles", "bottoms", "depths", "shallows", "tops")

    def __init__(self, cells: list[bytes], links: list[tuple[int, ...]], depths: list[int]) -> None:
        """Allocate the digests of all cells; ``depths`` are those of the tree."""
        self._cells = cells
        self._links = links
        self._middles: dict[int, tuple[list[bytes], list[int]]] = {}
        self.depths = depths
        self.tops = [b""] * len(cells)
        self.bottoms = list(self.tops)
        self.shallows = list(depths)

    def require(self, roots: Iterable[int]) -> None:
        """Compute the missing digests under ``roots``; raise BocError as ``fill`` does."""
        links, tops = self._links, self.tops
        found = [root for root in dict.fromkeys(roots) if not tops[root]]
        seen = set(found)
        for cell in found:
            for child in links[cell]:
                if child not in seen and not tops[child]:
                    seen.add(child)
                    found.append(child)
        found.sort(reverse=True)
        self.fill(found)

    def fill(self, order: Sequence[int]) -> None:
        """Compute the digests of cells, children first; raise BocError if one is invalid."""
        cells, links, depths = self._cells, self._links, self.depths
        tops, bottoms = self.tops, self.bottoms
        for cell in order:
            head = cells[cell]
            if head[0] > _MAX_PLAIN_D1:
                self._fill(cell)
                continue
            children = links[cell]
            parts = [head, *[depths[child].to_bytes(DEPTH_BYTES) for child in children]]
            parts += [tops[child] for child in children]
            tops[cell] = bottoms[cell] = sha256(b"".join(parts)).digest()

    def add(self) -> None:
        """Compute the digests of the cell appended last; raise BocError if it is invalid."""
        cell = len(self.tops)
        for child in self._links[cell]:
            if not self.tops[child]:
                self.require((child,))
        self.tops.append(b"")
        self.bottoms.append(b"")
        self.shallows.append(self.depths[cell])
        try:
            self.fill((cell,))
        except BocError:
            del self.tops[cell], self.bottoms[cell], self.shallows[cell]
            raise

    def at(self, cell: int, level: int) -> tuple[bytes, int]:
        """Return the hash and the depth of a cell at a level."""
        mask = self._cells[cell][0] >> 5
        below = mask & ((1 << level) - 1)
        if not below:
            return self.bottoms[cell], self.shallows[cell]
        if below == mask:
            return self.tops[cell], self.depths[cell]
        hashes, depths = self._middles[cell]
        return hashes[below.bit_count()], depths[below.bit_count()]

    def all_hashes(self, cell: int) -> bytes:
        """Return hashes, then depths, of all levels, in the form stored in bags of cells."""
        levels = self._cells[cell][0] >> 5 << 1 | 1  # a bit for each that has a hash of its own
        found = [self.at(cell, level) for level in range(MAX_LEVEL + 1) if levels >> level & 1]
        return b"".join(
            [each for each, _ in found] + [depth.to_bytes(DEPTH_BYTES) for _, depth in found]
        )

    def _fill(self, cell: int) -> None:
        head = self._cells[cell]
        mask = head[0] >> 5
        kind = head[2] if head[0] & EXOTIC_BIT else 0
        if kind == PRUNED:
            self._fill_pruned(cell, mask)
        elif kind in (MERKLE_PROOF, MERKLE_UPDATE):
            self._check_merkle(cell)
            self._fill_levels(cell, mask, 1)
        else:
            self._fill_levels(cell, mask, 0)

    def _fill_levels(self, cell: int, mask: int, deeper: int) -> None:
        """Compute the digests of any cell but a pruned branch; ``deeper`` is 1 for Merkle cells."""
        head = self._cells[cell]
        children = self._links[cell]
        hashes: list[bytes] = []
        depths: list[int] = []
        for level in range(mask.bit_length() + 1):
            if level and not mask >> (level - 1) & 1:
                continue
            d1 = head[0] & 0x1F | (mask & ((1 << level) - 1)) << 5
            below = [self.at(child, level + deeper) for child in children]
            parts = [bytes((d1, head[1])), hashes[-1] if hashes else head[2:]]
            parts += [depth.to_bytes(DEPTH_BYTES) for _, depth in below]
            parts += [child_hash for child_hash, _ in below]
            hashes.append(sha256(b"".join(parts)).digest())
            deepest = max((depth for _, depth in below), default=-1)
            if deepest >= MAX_DEPTH:
                raise BocError(f"cell {cell} represents a tree deeper than {MAX_DEPTH}")
            depths.append(deepest + 1)
        self._keep(cell, hashes, depths)

    def _fill_pruned(self, cell: int, mask: int) -> None:
        """Read a pruned branch: d1, d2, type, mask, hashes, depths; its own hash comes last."""
        head = self._cells[cell]
        count = mask.bit_count()
        start = 4 + count * HASH_BYTES
        hashes = [head[at : at + HASH_BYTES] for at in range(4, start, HASH_BYTES)]
        ends = range(start, start + count * DEPTH_BYTES, DEPTH_BYTES)
        depths = [int.from_bytes(head[at : at + DEPTH_BYTES], "big") for at in ends]
        self._keep(cell, [*hashes, sha256(head).digest()], [*depths, 0])

    def _keep(self, cell: int, hashes: list[bytes], depths: list[int]) -> None:
        self.bottoms[cell] = hashes[0]
        self.shallows[cell] = depths[0]
        self.tops[cell] = hashes[-1]
        if hashes[1:-1]:
            self._middles[cell] = hashes, depths

    def _check_merkle(self, cell: int) -> None:
        """Compare the hashes and depths stored in a Merkle cell with those of its children."""
        below = [self.at(child, 0) for child in self._links[cell]]
        stored = b"".join([each for each, _ in below])
        stored += b"".join([depth.to_bytes(DEPTH_BYTES) for _, depth in below])
        if self._cells[cell][3:] != stored:
            raise BocError(f"Merkle cell {cell} does not store the hashes of its children")


_from_bytes = int.from_bytes


def read_bits(head: bytes) -> tuple[int, int]:
    """Return the data of an ordinary cell as an integer, and its number of bits."""
    if head[0] & EXOTIC_BIT:
        name = KIND_NAMES.get(head[2], "exotic")
        raise BocError(f"expected an ordinary cell, found a {name} cell")
    if not head[1] & 1:
        return _from_bytes(head[2:], "big"), head[1] << 2
    tag = TAG_BITS[head[-1]]
    return _from_bytes(head[2:], "big") >> tag, (len(head) - 2 << 3) - tag


MAX_LEVEL = 3


class CellTree:
    """A parsed bag of cells, to which further cells can be appended.

    ``cells`` has d1, d2 and data of each cell (without in-cell hashes), ``links`` the indices of
    its children; ``roots`` are the roots of the bag; ``data`` the bytes that were parsed.
    """

    __slots__ = (
        "_depths",
        "_digests",
        "_is_trusted",
        "_parsed",
        "cells",
        "data",
        "links",
        "roots",
        "stored_hashes",
    )

    def __init__(self) -> None:
        self.data = b""
        self.roots: list[int] = []
        self.cells: list[bytes] = []
        self.links: list[tuple[int, ...]] = []
        self.stored_hashes: dict[int, bytes] = {}
        self._depths: list[int] = []
        self._digests: Digests | None = None
        self._is_trusted = False
        self._parsed = 0

    @property
    def count(self) -> int:
        """Number of cells, including appended ones."""
        return len(self.cells)

    def bit_length(self, cell: int) -> int:
        """Return the number of data bits of a cell."""
        head = self.cells[cell]
        return (len(head) - 2 << 3) - (TAG_BITS[head[-1]] if head[1] & 1 else 0)

    def bits(self, cell: int) -> tuple[int, int]:
        """Return the data of an ordinary cell as an integer, and its number of bits."""
        return read_bits(self.cells[cell])

    def payload(self, cell: int) -> bytes:
        """Return the data bytes of any cell, including the completion tag."""
        return self.cells[cell][2:]

    def kind(self, cell: int) -> int:
        """Return ORDINARY, PRUNED, LIBRARY, MERKLE_PROOF or MERKLE_UPDATE."""
        head = self.cells[cell]
        return head[2] if head[0] & EXOTIC_BIT else ORDINARY

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
        """Return the hash of a cell at a level; 3 is the representation hash."""
        digests = self._digests or self._make_digests()
        top = digests.tops[cell]
        if not top:
            digests.require((cell,))
            top = digests.tops[cell]
        return top if level >= MAX_LEVEL else digests.at(cell, level)[0]

    def hash_all(self, cells: Iterable[int]) -> None:
        """Compute the hashes of several cells at once, which is faster than one by one."""
        (self._digests or self._make_digests()).require(cells)

    def pruned_hash(self, cell: int, level: int) -> bytes | None:
        """Return the hash that a pruned branch stores for a level; None for any other cell."""
        is_pruned = self.kind(cell) == PRUNED and self.level_mask(cell) >> level
        return self.hash(cell, level) if is_pruned else None

    def depth(self, cell: int, level: int = MAX_LEVEL) -> int:
        """Return the depth of a cell at a level."""
        if level >= MAX_LEVEL:
            return self._depths[cell]
        self.hash(cell)
        return (self._digests or self._make_digests()).at(cell, level)[1]

    def take_parsed(self, *, check_crc: bool) -> bool:
        """Parse ``data`` with the C extension; return False if it declines."""
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
            digests.fill(range(len(self.cells) - 1, -1, -1))  # children come after their parents
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
            digests.tops, digests.bottoms, digests.shallows = found
        return found is not None

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
        links, count = self.links, len(self.cells)
        self._parsed = count
        self._depths = [0] * count
        for cell in range(count - 1, -1, -1):
            for child in links[cell]:
                if not cell < child < count:
                    raise BocError(f"cell {cell} of {count} refers to cell {child}, not forward")
            if links[cell] or self.cells[cell][0]:
                self._depths[cell] = self._measure_cell(cell)

    def _measure_cell(self, cell: int) -> int:
        """Check level and kind of a cell whose children were checked; return its depth."""
        cells, depths, children = self.cells, self._depths, self.links[cell]
        d1 = cells[cell][0]
        depth = masks = 0
        for child in children:
            masks |= cells[child][0]
            if depths[child] >= depth:
                depth = depths[child] + 1
        mask = masks >> 5
        if d1 & EXOTIC_BIT:
            mask = exotic_mask(cells[cell], [cells[child][0] >> 5 for child in children])
        if d1 >> 5 != mask:
            raise BocError(f"cell {cell} claims level mask {d1 >> 5}, but has {mask}")
        if depth > MAX_DEPTH:
            raise BocError(f"cell {cell} is the root of a tree deeper than {MAX_DEPTH}")
        return depth

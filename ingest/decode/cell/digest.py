"""Computes the hashes and depths of cells at every level.

Levels follow the node's ``DataCell``: a cell with level mask *m* has popcount(m) + 1 hashes, and
at level *l* has the one with index popcount(m & (2^l - 1)). The first covers the data, each further
one the previous hash. Children of a Merkle proof or update count one level deeper. A pruned branch
stores all but its last hash in its data.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.exotic import (
    DEPTH_BYTES,
    HASH_BYTES,
    MERKLE_PROOF,
    MERKLE_UPDATE,
    PRUNED,
)
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_DEPTH = 1024
"""Deepest tree the node accepts (``CellTraits::max_depth``)."""

_EXOTIC_BIT = 8
_LEVEL_ONE = 1
# First descriptors of the most common cells: ordinary without levels, and those of a Merkle update.
_MAX_PLAIN_D1 = 4
_FORK = 2
_PRUNED_ONCE = 0x28
_ABOVE_PRUNED = 0x20
_DESCRIPTORS = [bytes((d1,)) for d1 in range(_MAX_PLAIN_D1 + 1)]
_DEPTHS = [depth.to_bytes(DEPTH_BYTES, "big") for depth in range(0xFFFF + 1)]


def hash_plain(head: bytes, *below: tuple[bytes, int]) -> tuple[bytes, int]:
    """Return hash and depth of an ordinary cell of level 0 above children with these digests.

    Raises:
        BocError: it is deeper than the node accepts.
    """
    depth = 1 + max((depth for _, depth in below), default=-1)
    if depth > MAX_DEPTH:
        raise BocError(f"a cell over a tree of depth {depth - 1}")
    parts = [_DEPTHS[depth] for _, depth in below] + [digest for digest, _ in below]
    return sha256(b"".join([head, *parts])).digest(), depth


class Digests:
    """The hashes and depths of the cells of one tree, parallel to its arrays.

    ``tops`` are the representation hashes, ``bottoms`` the hashes at level 0; ``depths`` and
    ``shallows`` are the corresponding depths. Hashes in between are rare and in a dict. An empty
    top means that the digests of a cell are not computed yet; ``require`` computes them.
    """

    __slots__ = (
        *("_cells", "_links", "_middles", "_parsed", "_seen"),
        *("bottoms", "depths", "shallows", "tops"),
    )

    def __init__(self, cells: list[bytes], links: list[tuple[int, ...]], depths: list[int]) -> None:
        """Allocate the digests of all cells; ``depths`` are those of the tree."""
        self._cells = cells
        self._links = links
        self._middles: dict[int, tuple[list[bytes], list[int]]] = {}
        self._seen: set[bytes] = set()
        self._parsed = 0
        self.depths = depths
        self.tops = [b""] * len(cells)
        self.bottoms = list(self.tops)
        self.shallows = list(depths)

    def require_all(self) -> None:
        """Compute all digests, last cell first, since children come after their parents."""
        self._fill_parsed(range(len(self._cells) - 1, -1, -1))

    def take(self, tops: list[bytes], bottoms: list[bytes], shallows: list[int]) -> None:
        """Adopt the results of ``require_all`` for cells with at most two hashes."""
        self.tops, self.bottoms, self.shallows = tops, bottoms, shallows
        self._seen.update(tops)
        self._parsed += len(tops)

    def require(self, roots: Iterable[int]) -> None:
        """Compute the missing digests under ``roots``; raise BocError as ``require_all`` does."""
        links, tops = self._links, self.tops
        found = [root for root in dict.fromkeys(roots) if not tops[root]]
        seen = set(found)
        for cell in found:
            for child in links[cell]:
                if child not in seen and not tops[child]:
                    seen.add(child)
                    found.append(child)
        found.sort(reverse=True)
        self._fill_parsed(found)

    def _fill_parsed(self, order: Sequence[int]) -> None:
        """Compute the digests of cells, children first, and record whether any are equal."""
        self._fill_cells(order)
        self._seen.update([self.tops[cell] for cell in order])
        self._parsed += len(order)

    def _fill_cells(self, order: Sequence[int]) -> None:
        """Compute the digests of cells, children first; the most common kinds are inlined."""
        cells, links, depths = self._cells, self._links, self.depths
        tops, bottoms, shallows = self.tops, self.bottoms, self.shallows
        for cell in order:
            head = cells[cell]
            d1 = head[0]
            children = links[cell]
            if d1 <= _MAX_PLAIN_D1:
                if d1 == 1:
                    (a,) = children
                    head = b"".join((head, _DEPTHS[depths[a]], tops[a]))
                elif d1 == _FORK:
                    a, b = children
                    parts = (head, _DEPTHS[depths[a]], _DEPTHS[depths[b]], tops[a], tops[b])
                    head = b"".join(parts)
                elif children:
                    below = [_DEPTHS[depths[child]] for child in children]
                    head = b"".join([head, *below, *[tops[child] for child in children]])
                tops[cell] = bottoms[cell] = sha256(head).digest()
            elif d1 == _PRUNED_ONCE and head[3] == _LEVEL_ONE:
                bottoms[cell] = head[4:36]
                shallows[cell] = head[36] << 8 | head[37]
                tops[cell] = sha256(head).digest()
            elif d1 & ~7 == _ABOVE_PRUNED:
                self._fill_above_pruned(cell, head, children)
            else:
                self._fill(cell)

    @property
    def are_distinct(self) -> bool:
        """Whether all cells with digests differ, not counting appended ones."""
        return len(self._seen) == self._parsed

    def _fill_above_pruned(self, cell: int, head: bytes, children: tuple[int, ...]) -> None:
        """Compute the digests of an ordinary cell of level 1; nearly all of them are forks."""
        depths, shallows, tops, bottoms = self.depths, self.shallows, self.tops, self.bottoms
        plain = _DESCRIPTORS[head[0] & 7]
        if len(children) == _FORK:
            a, b = children
            depth_a, depth_b = shallows[a], shallows[b]
            shallows[cell] = self._deeper(cell, max(depth_b, depth_a))
            parts = (plain, head[1:], _DEPTHS[depth_a], _DEPTHS[depth_b], bottoms[a], bottoms[b])
            low = bottoms[cell] = sha256(b"".join(parts)).digest()
            parts = (head[:2], low, _DEPTHS[depths[a]], _DEPTHS[depths[b]], tops[a], tops[b])
            tops[cell] = sha256(b"".join(parts)).digest()
            return
        shallows[cell] = self._deeper(cell, max([shallows[child] for child in children]))
        below = [_DEPTHS[shallows[child]] for child in children] + [
            bottoms[child] for child in children
        ]
        low = bottoms[cell] = sha256(b"".join([plain, head[1:], *below])).digest()
        below = [_DEPTHS[depths[child]] for child in children] + [tops[child] for child in children]
        tops[cell] = sha256(b"".join([head[:2], low, *below])).digest()

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
            self._fill_cells((cell,))
        except BocError:
            del self.tops[cell], self.bottoms[cell], self.shallows[cell]
            raise

    def hash_at(self, cell: int, level: int) -> bytes:
        """Return the hash of a cell at a level."""
        mask = self._cells[cell][0] >> 5
        below = mask & ((1 << level) - 1)
        if not below:
            return self.bottoms[cell]
        if below == mask:
            return self.tops[cell]
        return self._middles[cell][0][below.bit_count()]

    def depth_at(self, cell: int, level: int) -> int:
        """Return the depth of a cell at a level."""
        mask = self._cells[cell][0] >> 5
        below = mask & ((1 << level) - 1)
        if not below:
            return self.shallows[cell]
        if below == mask:
            return self.depths[cell]
        return self._middles[cell][1][below.bit_count()]

    def all_hashes(self, cell: int) -> bytes:
        """Return hashes, then depths, of all levels, in the form stored in bags of cells."""
        mask = self._cells[cell][0] >> 5
        levels = [0, *(bit + 1 for bit in range(3) if mask >> bit & 1)]
        hashes = [self.hash_at(cell, level) for level in levels]
        return b"".join(hashes + [_DEPTHS[self.depth_at(cell, level)] for level in levels])

    def _fill(self, cell: int) -> None:
        head = self._cells[cell]
        mask = head[0] >> 5
        kind = head[2] if head[0] & _EXOTIC_BIT else 0
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
            below = [self.depth_at(child, level + deeper) for child in children]
            parts = [bytes((d1, head[1])), hashes[-1] if hashes else head[2:]]
            parts += [_DEPTHS[depth] for depth in below]
            parts += [self.hash_at(child, level + deeper) for child in children]
            hashes.append(sha256(b"".join(parts)).digest())
            depths.append(self._deeper(cell, max(below)) if below else 0)
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
        if len(hashes) > _LEVEL_ONE + 1:
            self._middles[cell] = hashes, depths

    def _deeper(self, cell: int, depth: int) -> int:
        """Return the depth of a cell above children of depth ``depth``, up to the node's limit."""
        if depth >= MAX_DEPTH:
            raise BocError(f"cell {cell} represents a tree deeper than {MAX_DEPTH}")
        return depth + 1

    def _check_merkle(self, cell: int) -> None:
        """Compare the hashes and depths stored in a Merkle cell with those of its children."""
        head = self._cells[cell]
        children = self._links[cell]
        stored = b"".join(self.bottoms[child] for child in children)
        stored += b"".join(_DEPTHS[self.shallows[child]] for child in children)
        if head[3:] != stored:
            raise BocError(f"Merkle cell {cell} does not store the hashes of its children")

"""The cells that account states and libraries are made of, kept once by hash.

A cell is kept with the hash, level and child hashes it has in the state, not in the block that
brought it: inside a Merkle update everything above a pruned branch is one level higher. A cell
under *d* Merkle cells of the state shows its state hash at level *d*; the update's own pruned
branches have a level above *d* there, pruned branches that the state itself holds do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.record import pack_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tonlake.ingest.decode.cell.boc import CellTree
    from tonlake.ingest.decode.rows import Row

_EXOTIC_BIT = 8

CellAt = tuple[int, int]
"""A cell and its Merkle depth: the number of Merkle cells of the state above it."""


class StateCells:
    """Appends rows of ``state_cells`` for any number of blocks; a hash appears once."""

    def __init__(self, rows: list[Row]) -> None:
        """Append to ``rows``."""
        self._rows = rows
        self._seen: set[bytes] = set()

    def keep(self, tree: CellTree, roots: Iterable[CellAt], mc_seqno: int) -> set[bytes]:
        """Keep all cells under ``roots``; return the state hashes of those that are pruned."""
        pruned: set[bytes] = set()
        seen = self._seen
        for depth, cells in iter_depths(tree, roots):
            tree.hash_all(cells)
            for cell in cells:
                state_hash = tree.pruned_hash(cell, depth)
                if state_hash is not None:
                    pruned.add(state_hash)
                    continue
                state_hash = tree.hash(cell, depth)
                if state_hash not in seen:
                    seen.add(state_hash)
                    self._rows.append((state_hash, mc_seqno, *pack_cell(tree, cell, depth)))
        return pruned


def iter_cells(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[CellAt]:
    """Yield every cell under ``roots``, roots included, once for each Merkle depth it stands at."""
    for depth, found in iter_depths(tree, roots):
        for cell in found:
            yield cell, depth


def iter_depths(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[tuple[int, list[int]]]:
    """Yield each Merkle depth and all cells under ``roots`` that stand there, least depth first."""
    waiting: dict[int, dict[int, None]] = {}
    for cell, depth in roots:
        waiting.setdefault(depth, {})[cell] = None
    cells, links = tree.cells, tree.links
    while waiting:
        depth = min(waiting)
        met = waiting.pop(depth)
        found = list(met)
        for cell in found:
            kids = links[cell]
            if kids and cells[cell][0] & _EXOTIC_BIT:  # a Merkle cell: no other exotic one has any
                waiting.setdefault(depth + 1, {}).update(dict.fromkeys(kids))
                continue
            for kid in kids:
                if kid not in met:
                    met[kid] = None
                    found.append(kid)
        yield depth, found

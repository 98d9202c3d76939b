"""The cells that account states and libraries are made of, kept once by hash.

A cell is kept with the hash, level and child hashes it has in the state, not in the block that
brought it: inside a Merkle update everything above a pruned branch is one level higher. A cell
under *d* Merkle cells of the state shows its state hash at level *d*; the update's own pruned
branches have a level above *d* there, pruned branches that the state itself holds do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.cell.exotic import MERKLE_PROOF, MERKLE_UPDATE, PRUNED
from ingest.cell.record import pack_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ingest.block.rows import Row
    from ingest.cell.boc import CellTree

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
        for cell, depth in iter_cells(tree, roots):
            state_hash = tree.hash(cell, depth)
            if tree.kind(cell) == PRUNED and tree.level_mask(cell) >> depth:
                pruned.add(state_hash)
            elif state_hash not in self._seen:
                self._seen.add(state_hash)
                self._rows.append((state_hash, mc_seqno, *pack_cell(tree, cell, depth)))
        return pruned


def iter_cells(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[CellAt]:
    """Yield every cell under ``roots``, roots included, once for each Merkle depth it stands at."""
    met = dict.fromkeys(roots)
    todo = list(met)
    while todo:
        at = todo.pop()
        yield at
        cell, depth = at
        below = depth + (tree.kind(cell) in (MERKLE_PROOF, MERKLE_UPDATE))
        for kid in tree.refs(cell):
            if (kid, below) not in met:
                met[kid, below] = None
                todo.append((kid, below))

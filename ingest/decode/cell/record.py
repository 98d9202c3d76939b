"""Converts cells to rows of ``state_cells``, one per hash, and back to bags of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.exotic import MERKLE_PROOF, MERKLE_UPDATE
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, MissingCell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DESCRIPTOR_BYTES = 2


def pack_cell(tree: CellTree, cell: int, level: int = 0) -> tuple[bytes, list[bytes]]:
    """Return the descriptors and data of a cell, and the hashes of its children.

    ``level`` is the Merkle depth of the cell in the state that the tree proves or updates: 0, and
    one more below every Merkle cell of the state itself. The result is the cell as in the
    complete state, so ``tree.hash(cell, level)`` is its representation hash there.
    """
    head = tree.cells[cell]
    below = level + 1 if tree.kind(cell) in (MERKLE_PROOF, MERKLE_UPDATE) else level
    mask = head[0] >> 5 & ((1 << level) - 1)
    if head[0] >> 5 != mask:
        head = bytes((head[0] & 0x1F | mask << 5,)) + head[1:]
    return head, [tree.hash(child, below) for child in tree.links[cell]]


def assemble_boc(
    root_hash: bytes, cells: Mapping[bytes, tuple[bytes, Sequence[bytes]]], *, crc32c: bool = False
) -> bytes:
    """Return the bag of the cell with this hash, assembled from packed cells by hash.

    Raises:
        MissingCell: a cell is not in ``cells``.
        BocError: a packed cell does not have the hash that is its key.
    """
    tree = CellTree()
    return serialize_boc(tree, [append_packed(tree, root_hash, cells, {})], crc32c=crc32c)


def append_packed(
    tree: CellTree,
    root_hash: bytes,
    cells: Mapping[bytes, tuple[bytes, Sequence[bytes]]],
    places: dict[bytes, int],
    *,
    by_hash: bool = True,
) -> int:
    """Append the cell with this hash and all its descendants to a tree; return its index.

    ``places`` maps hashes to cells already in the tree; appended cells are added to it. Without
    ``by_hash`` keys are not hashes, and are not verified.

    Raises:
        MissingCell, BocError: see ``assemble_boc``; descendants may have been appended.
    """
    opened: set[bytes] = set()
    todo = [root_hash]
    while todo:
        cell_hash = todo[-1]
        if cell_hash in places:
            todo.pop()
            continue
        if cell_hash not in cells:
            raise MissingCell(cell_hash)
        head, children = cells[cell_hash]
        if len(head) < _DESCRIPTOR_BYTES or head[0] & 7 != len(children):
            raise BocError(f"the cell stored as {cell_hash.hex()} is not a valid cell")
        missing = [child for child in children if child not in places]
        if missing:
            if cell_hash in opened:
                raise BocError(f"the cell stored as {cell_hash.hex()} is its own descendant")
            opened.add(cell_hash)
            todo += missing
            continue
        todo.pop()
        place = tree.append(head, tuple(places[child] for child in children))
        if by_hash and tree.hash(place) != cell_hash:
            raise BocError(f"the cell stored as {cell_hash.hex()} has another hash")
        places[cell_hash] = place
    return places[root_hash]

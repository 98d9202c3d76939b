"""Writing bags of cells: the generic form, in the node's order (module ``order``).

The bytes equal those of the node's ``std_boc_serialize``, which TON Center shows. The work is
linear in the cells, however often they are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.cell.crc32c import crc32c as compute_crc32c
from ingest.cell.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ingest.cell.tree import CellTree

_MAGIC = bytes.fromhex("b5ee9c72")
_CRC_FLAG = 0x40
# One byte for references and for sizes, one cell, one root, none absent; size and root follow.
_SINGLE_HEAD = _MAGIC + bytes((1, 1, 1, 1, 0))


def serialize_boc(tree: CellTree, roots: Sequence[int], *, crc32c: bool = False) -> bytes:
    """Return the bag of the sub-trees under ``roots``: generic form without index.

    ``crc32c=True`` gives the bytes that TON Center shows (``std_boc_serialize`` with CRC).
    """
    links = tree.links
    if len(roots) == 1 and not links[roots[0]]:
        bag = serialize_single(tree.cells[roots[0]])
    else:
        bag = _write(tree, roots)
    return add_crc32c(bag) if crc32c else bag


def add_crc32c(bag: bytes) -> bytes:
    """Return a bag written by ``serialize_boc`` with its CRC-32C."""
    bag = _MAGIC + bytes((bag[4] | _CRC_FLAG,)) + bag[5:]
    return bag + compute_crc32c(bag).to_bytes(4, "little")


def serialize_single(cell: bytes) -> bytes:
    """Return the bag of one cell without children, given as d1, d2 and data."""
    return _SINGLE_HEAD + bytes((len(cell), 0)) + cell


def _write(tree: CellTree, roots: Sequence[int]) -> bytes:
    """Return the bag of any cells; equal cells are written once."""
    order, twins = canonical_order(tree, roots)
    places = {cell: place for place, cell in enumerate(order)}
    places |= {cell: places[twin] for cell, twin in twins.items()}
    return _write_ordered(tree, roots, order, places)


def copy_part(tree: CellTree, root: int) -> bytes:
    """Return a bag of a cell and all below it as they stand in a parsed bag: nothing is hashed.

    Equal cells that the bag holds twice are written twice, and their order is not the node's.
    """
    seen = {root}
    todo = [root]
    while todo:
        fresh = [kid for kid in tree.links[todo.pop()] if kid not in seen]
        seen.update(fresh)
        todo += fresh
    order = sorted(seen)  # in a bag parents stand before children
    return _write_ordered(tree, [root], order, {cell: at for at, cell in enumerate(order)})


def _write_ordered(
    tree: CellTree, roots: Sequence[int], order: Sequence[int], places: Mapping[int, int]
) -> bytes:
    """Return the bag of cells in a given order; ``places`` says where in it each cell stands."""
    count = len(order)
    width = (count.bit_length() + 7) // 8
    cells = tree.cells
    links = tree.links
    place = places.__getitem__
    parts = []
    for cell in order:
        parts.append(cells[cell])
        kids = links[cell]
        if kids:
            named = map(place, kids)
            parts.append(bytes(named) if width == 1 else _join(named, width))
    body = b"".join(parts)
    size_width = (len(body).bit_length() + 7) // 8
    head = _MAGIC + bytes((width, size_width)) + _join([count, len(roots), 0], width)
    size = len(body).to_bytes(size_width, "big")
    return b"".join((head, size, _join([places[root] for root in roots], width), body))


def _join(numbers: Iterable[int], width: int) -> bytes:
    """Return numbers of ``width`` bytes each."""
    return b"".join([number.to_bytes(width, "big") for number in numbers])

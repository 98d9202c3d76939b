"""Writing bags of cells: the generic form, in the node's order (module ``order``).

The bytes equal those of the node's ``std_boc_serialize``, which TON Center shows. The work is
linear in the cells, however often they are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.cell.crc32c import crc32c as compute_crc32c
from ingest.cell.order import canonical_order

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    count = len(order)
    width = (count.bit_length() + 7) // 8
    places = {cell: place for place, cell in enumerate(order)}
    for cell, twin in twins.items():
        places[cell] = places[twin]
    parts = []
    for cell in order:
        parts.append(tree.cells[cell])
        kids = tree.links[cell]
        if kids and width == 1:
            parts.append(bytes([places[kid] for kid in kids]))
        elif kids:
            parts += [places[kid].to_bytes(width, "big") for kid in kids]
    body = b"".join(parts)
    size_width = (len(body).bit_length() + 7) // 8
    head = [_MAGIC, bytes((width, size_width))]
    head += [number.to_bytes(width, "big") for number in (count, len(roots), 0)]
    head.append(len(body).to_bytes(size_width, "big"))
    head += [places[root].to_bytes(width, "big") for root in roots]
    return b"".join([*head, body])

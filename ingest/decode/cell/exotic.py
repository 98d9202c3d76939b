"""Exotic cells: their kinds, the required shape of each, and its level.

Source of the shapes: the node's ``DataCell::create``. The type is the first byte of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Sequence

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

"""Merkle proofs as lite servers give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.boc import MERKLE_PROOF, parse_boc
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.tree import CellTree


def open_proof(data: bytes, root_hash: bytes) -> CellTree:
    """Return the tree that a Merkle proof shows, its root the first of the tree.

    Raises:
        BocError: it is no Merkle proof, or not of the cell with this hash.
    """
    tree = parse_boc(data)
    proof = tree.roots[0]
    if tree.kind(proof) != MERKLE_PROOF:
        raise BocError("it is no Merkle proof")
    (root,) = tree.refs(proof)
    if tree.hash(root, 0) != root_hash:
        raise BocError(f"it proves {tree.hash(root, 0).hex()}, not {root_hash.hex()}")
    tree.roots = [root]
    return tree

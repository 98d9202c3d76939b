"""Merkle cells for tests, and updates that prune what the node prunes."""

from collections.abc import Iterable, Iterator

from tonlake.ingest.decode.block.state import CellAt, iter_depths
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, MERKLE_UPDATE, PRUNED, CellTree


def iter_cells(tree: CellTree, roots: Iterable[CellAt]) -> Iterator[CellAt]:
    for depth, found in iter_depths(tree, roots):
        for cell in found:
            yield cell, depth


def end_proof(tree: CellTree, kid: int) -> int:
    builder = CellBuilder(tree).store_uint(MERKLE_PROOF, 8).store_bytes(tree.hash(kid, 0))
    return builder.store_uint(tree.depth(kid, 0), 16).store_ref(kid).end(exotic=True)


def end_update(tree: CellTree, old: int, new: int) -> int:
    builder = CellBuilder(tree).store_uint(MERKLE_UPDATE, 8)
    builder.store_bytes(tree.hash(old, 0)).store_bytes(tree.hash(new, 0))
    builder.store_uint(tree.depth(old, 0), 16).store_uint(tree.depth(new, 0), 16)
    return builder.store_ref(old).store_ref(new).end(exotic=True)


def end_pruned(tree: CellTree, mask: int, hashes: list[bytes], depths: list[int]) -> int:
    """Return a pruned branch with these hashes and depths, lowest level first."""
    builder = CellBuilder(tree).store_uint(PRUNED, 8).store_uint(mask, 8)
    for cell_hash in hashes:
        builder.store_bytes(cell_hash)
    for depth in depths:
        builder.store_uint(depth, 16)
    return builder.end(exotic=True)


def prune(
    tree: CellTree, at: tuple[int, int], cut: set[tuple[int, int]], done: dict[tuple[int, int], int]
) -> int:
    """Copy the cell as an update shows it, with branches for the cells in ``cut``."""
    if at in done:
        return done[at]
    cell, depth = at
    if at in cut:
        mask = tree.level_mask(cell) | 1 << depth
        levels = [0, *(level for level in range(1, depth + 1) if mask >> (level - 1) & 1)]
        hashes = [tree.hash(cell, level) for level in levels]
        made = end_pruned(tree, mask, hashes, [tree.depth(cell, level) for level in levels])
    else:
        below = depth + (tree.kind(cell) in (MERKLE_PROOF, MERKLE_UPDATE))
        kids = [prune(tree, (kid, below), cut, done) for kid in tree.links[cell]]
        head = tree.cells[cell]
        mask = tree.level_mask(cell)
        for kid in kids:
            mask |= tree.level_mask(kid) >> (below - depth)
        made = tree.append(bytes((head[0] & 0x1F | mask << 5,)) + head[1:], tuple(kids))
    done[at] = made
    return made


def make_update(tree: CellTree, old: int, new: int) -> tuple[int, int]:
    """Return both sides of an update as the node makes it: what changed, and the ways there."""
    before = {tree.hash(cell) for cell, _ in iter_cells(tree, [(old, 0)])}
    after = {tree.hash(cell) for cell, _ in iter_cells(tree, [(new, 0)])}
    reused = {
        at
        for at in iter_cells(tree, [(new, 0)])
        if tree.links[at[0]] and tree.hash(at[0]) in before
    }
    dropped = {
        at
        for at in iter_cells(tree, [(old, 0)])
        if tree.links[at[0]] and (tree.hash(at[0]) in after or not _leads_to(tree, at, after))
    }
    return prune(tree, (old, 0), dropped - {(old, 0)}, {}), prune(tree, (new, 0), reused, {})


def _leads_to(tree: CellTree, at: tuple[int, int], hashes: set[bytes]) -> bool:
    return any(tree.links[cell] and tree.hash(cell) in hashes for cell, _ in iter_cells(tree, [at]))

"""State cells: whatever an update prunes, hashes and levels are those of the whole state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.networks import Cells
from tests.ingest.updates import end_proof, end_pruned, end_update, prune
from tonlake.ingest.decode.block.state import StateCells, iter_cells
from tonlake.ingest.decode.cell.boc import CellTree, parse_boc, serialize_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.packed import assemble_boc
from tonlake.ingest.decode.cell.tree import LIBRARY
from tonlake.ingest.decode.rows import Row
from tonlake.ingest.errors import MissingCell

MAX_MERKLE_DEPTH = 2
KINDS = ("plain", "fork", "library", "proof", "update", "pruned")


class _Grower:
    """Draws a tree of cells as a state may hold it: Merkle cells, pruned branches below them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.tree = CellBuilder().tree
        self.left = 30

    def grow(self, depth: int, kinds: tuple[str, ...] = KINDS) -> int:
        self.left -= 1
        allowed = [kind for kind in kinds if self._fits(kind, depth)]
        kind = self.draw(st.sampled_from(allowed))
        tree = self.tree
        if kind == "library":
            content = self.draw(st.binary(min_size=32, max_size=32))
            return CellBuilder(tree).store_uint(LIBRARY, 8).store_bytes(content).end(exotic=True)
        if kind == "proof":
            return end_proof(tree, self.grow(depth + 1))
        if kind == "update":
            return end_update(tree, self.grow(depth + 1), self.grow(depth + 1))
        if kind == "pruned":
            mask = self.draw(st.integers(1, (1 << depth) - 1))
            count = mask.bit_count()
            hashes = st.lists(st.binary(min_size=32, max_size=32), min_size=count, max_size=count)
            depths = st.lists(st.integers(0, 100), min_size=count, max_size=count)
            return end_pruned(tree, mask, self.draw(hashes), self.draw(depths))
        builder = CellBuilder(tree).store_bytes(self.draw(st.binary(max_size=3)))
        for _ in range(self.draw(st.integers(1, 4)) if kind == "fork" else 0):
            builder.store_ref(self.grow(depth))
        return builder.end()

    def _fits(self, kind: str, depth: int) -> bool:
        if kind == "pruned":
            return depth > 0
        if kind in {"proof", "update"}:
            return depth < MAX_MERKLE_DEPTH and self.left > 0
        return kind != "fork" or self.left > 0


@st.composite
def whole_states(draw: st.DrawFn) -> tuple[CellTree, int]:
    """Draw a whole state: a tree of level 0 whose root has children."""
    grower = _Grower(draw)
    root = grower.grow(0, ("fork", "proof", "update"))
    return grower.tree, root


def _keep(tree: CellTree, root: int) -> tuple[Cells, set[bytes]]:
    rows: list[Row] = []
    pruned = StateCells(rows).keep(tree, [(root, 0)], 1)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: (row[2], row[3]) for row in rows}, pruned


@given(whole_states(), st.data())
def test_two_updates_give_the_complete_state(
    state: tuple[CellTree, int], data: st.DataObject
) -> None:
    """What one update prunes and another shows comes together to the very bytes of the state."""
    tree, root = state
    places = [at for at in iter_cells(tree, [(root, 0)]) if at[0] != root]
    cut = data.draw(st.sets(st.sampled_from(places), min_size=1))
    shown = prune(tree, (root, 0), cut, {})
    assert tree.hash(shown, 0) == tree.hash(root)
    proof = end_proof(tree, shown)
    block = parse_boc(serialize_boc(tree, [proof]))
    cells, pruned = _keep(block, block.refs(block.roots[0])[0])
    earlier, _ = _keep(tree, root)
    assert pruned <= earlier.keys()
    for cell_hash in cells.keys() & earlier.keys():
        assert cells[cell_hash] == earlier[cell_hash]
    assert cells.keys() <= earlier.keys()
    if pruned - cells.keys():
        with pytest.raises(MissingCell):
            assemble_boc(tree.hash(root), cells)
    # Only what the update prunes is taken from before, and all that hangs on it.
    missing = {at for at in places if tree.hash(at[0]) in pruned}
    below = {tree.hash(cell) for cell, _ in iter_cells(tree, missing)}
    together = {key: earlier[key] for key in below} | cells
    assert assemble_boc(tree.hash(root), together) == serialize_boc(tree, [root])


def test_the_same_pruned_cell_is_of_the_update_or_of_the_state() -> None:
    """At depth 0 a branch of level 1 was cut by the update, under a Merkle proof it is state."""
    tree = CellBuilder().tree
    branch = end_pruned(tree, 1, [b"\7" * 32], [3])
    proof = end_proof(tree, branch)
    root = CellBuilder(tree).store_ref(branch).store_ref(proof).end()
    cells, pruned = _keep(tree, root)
    assert pruned == {b"\7" * 32}
    assert tree.hash(branch) in cells
    assert cells[tree.hash(proof)] == (tree.cells[proof], [tree.hash(branch)])
    assert cells[tree.hash(root, 0)] == (b"\2\0", [b"\7" * 32, tree.hash(proof)])


def test_a_cell_is_kept_once_for_all_blocks() -> None:
    builder = CellBuilder().store_uint(5, 8)
    cell = builder.end()
    rows: list[Row] = []
    cells = StateCells(rows)
    cells.keep(builder.tree, [(cell, 0)], 1)
    cells.keep(builder.tree, [(cell, 0), (cell, 0)], 2)
    assert rows == [(builder.tree.hash(cell), 1, b"\0\2\5", [])]

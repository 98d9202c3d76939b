"""Cells as rows: any tree round-trips through its packed cells."""

import pytest
from hypothesis import given, settings

from tests.ingest.decode.cell.samples import trees
from tests.ingest.updates import end_proof, end_pruned
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell
from tonlake.ingest.decode.cell.packed import append_packed, assemble_boc, pack_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, MissingCell

Packed = dict[bytes, tuple[bytes, list[bytes]]]


def _pack_all(tree: CellTree) -> Packed:
    packed: Packed = {}
    for cell in range(tree.count):
        if not tree.level_mask(cell):
            packed[tree.hash(cell)] = pack_cell(tree, cell)
    return packed


@settings(max_examples=100, deadline=None)
@given(trees(exotic=False))
def test_a_tree_comes_back(sample: tuple[CellTree, int]) -> None:
    tree, root = sample
    bag = serialize_boc(tree, [root])
    assert assemble_boc(tree.hash(root), _pack_all(tree)) == bag
    assert assemble_boc(tree.hash(root), _pack_all(tree), crc32c=True)[:-4][5:] == bag[5:]


def test_cells_above_pruned_branches_are_packed_as_the_state_has_them() -> None:
    whole = CellTree()
    leaf = append_cell(whole, 5, 8, ())
    inner = end_proof(whole, append_cell(whole, 6, 8, (leaf,)))
    root = append_cell(whole, 7, 8, (inner, leaf))
    partial = CellTree()
    pruned = end_pruned(partial, 1, [whole.hash(leaf)], [0])
    deep = end_pruned(partial, 2, [whole.hash(leaf)], [0])
    middle = append_cell(partial, 6, 8, (deep,))
    proof = end_proof(partial, middle)
    top = append_cell(partial, 7, 8, (proof, pruned))
    assert partial.hash(top, 0) == whole.hash(root)
    packed = {
        partial.hash(top, 0): pack_cell(partial, top),
        partial.hash(proof, 0): pack_cell(partial, proof),
        partial.hash(middle, 1): pack_cell(partial, middle, 1),
        whole.hash(leaf): pack_cell(whole, leaf),
    }
    assert assemble_boc(whole.hash(root), packed) == serialize_boc(whole, [root])


def test_what_is_missing_or_wrong_is_named(tree: CellTree) -> None:
    leaf = append_cell(tree, 5, 8, ())
    root = append_cell(tree, 7, 8, (leaf,))
    packed = _pack_all(tree)
    leaf_hash, root_hash = tree.hash(leaf), tree.hash(root)
    with pytest.raises(MissingCell) as missing:
        assemble_boc(root_hash, {root_hash: packed[root_hash]})
    assert missing.value.hash == leaf_hash
    wrong: list[Packed] = [
        packed | {leaf_hash: (b"\x00\x02\x06", [])},
        packed | {leaf_hash: (b"", [])},
        packed | {leaf_hash: (b"\x01\x02\x05", [])},
        packed | {leaf_hash: (b"\x01\x02\x05", [root_hash])},
        packed | {leaf_hash: (b"\x20\x02\x05", [])},
        packed | {leaf_hash: (b"\x08\x00", [])},
    ]
    for cells in wrong:
        with pytest.raises(BocError):
            assemble_boc(root_hash, cells)
    assert parse_boc(assemble_boc(root_hash, packed)).count == 2


def test_a_wrong_cell_gets_no_place(tree: CellTree) -> None:
    wanted = tree.hash(append_cell(tree, 5, 8, ()))
    places: dict[bytes, int] = {}
    with pytest.raises(BocError, match="has another hash"):
        append_packed(tree, wanted, {wanted: (b"\x00\x02\x06", [])}, places)
    assert not places

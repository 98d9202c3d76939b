"""The order of cells in a bag equals the node's, by its definition and in its files."""

from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from pytoniq_core.boc import Cell

from tests.ingest.decode.cell.samples import order_plainly, trees
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import canonical_order, serialize_boc, serialize_depth_first


@st.composite
def bushes(draw: st.DrawFn) -> CellTree:
    """Up to 90 cells with many shared ones, so that weights of every size occur."""
    tree = CellTree()
    count = draw(st.integers(20, 90))
    choices = Random(draw(st.integers(0, 1 << 32)))  # noqa: S311 - no secret
    near = draw(st.integers(2, 30))
    for number in range(count):
        first = max(0, number - near)
        kids = choices.choices(range(first, number), k=choices.randrange(5)) if number else []
        append_cell(tree, number, 16, tuple(kids))
    return tree


def _hashes(tree: CellTree, roots: list[int]) -> list[bytes]:
    return [tree.hash(cell) for cell in canonical_order(tree, roots).cells]


@settings(max_examples=60, deadline=None)
@given(bushes(), st.data())
def test_order_is_the_nodes(tree: CellTree, data: st.DataObject) -> None:
    some = st.lists(st.integers(0, tree.count - 1), max_size=3)
    roots = [tree.count - 1, *data.draw(some)]
    assert _hashes(tree, roots) == order_plainly(tree, roots)
    for cell in range(tree.count):
        assert _hashes(tree, [cell]) == order_plainly(tree, [cell])


@settings(max_examples=60, deadline=None)
@given(bushes(), st.booleans())
def test_depth_first_order_is_that_of_an_independent_writer(tree: CellTree, crc32c: bool) -> None:  # noqa: FBT001 - drawn
    for root in range(0, min(tree.count, 24), 3):
        cell = Cell.one_from_boc(serialize_boc(tree, [root]))
        assert serialize_depth_first(tree, root, crc32c=crc32c) == cell.to_boc(hash_crc32=crc32c)


def test_depth_first_order_visits_shared_cells_once(tree: CellTree) -> None:
    root = append_cell(tree, 0, 16, ())
    for number in range(1, 200):
        root = append_cell(tree, number, 16, (root, root))
    bag = serialize_depth_first(tree, root)
    assert parse_boc(bag).hash(parse_boc(bag).roots[0]) == tree.hash(root)


@settings(max_examples=100, deadline=None)
@given(trees())
def test_order_of_exotic_and_equal_cells(sample: tuple[CellTree, int]) -> None:
    tree, root = sample
    assert _hashes(tree, [root]) == order_plainly(tree, [root])


def test_files_of_nodes_are_in_this_order(shared: Path) -> None:
    files = sorted((shared / "data").glob("*/**/*.boc"))
    assert len(files) > 50
    for file in files:
        tree = parse_boc(file.read_bytes(), check_crc=False)
        again = parse_boc(serialize_boc(tree, tree.roots))
        assert (again.cells, again.links) == (tree.cells, tree.links), file.name

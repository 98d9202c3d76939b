"""Hash maps of another library are walked in order; bombs and false fields are refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytoniq_core import Builder, Cell, HashMap

from tests.ingest.updates import end_pruned
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.dictionary import build_hashmap, iter_hashmap, iter_hashmap_slice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([1, 7, 15, 32, 64, 256]), st.data())
def test_maps_of_another_library_are_walked_in_order(bits: int, data: st.DataObject) -> None:
    keys = st.integers(0, (1 << bits) - 1)
    wanted = data.draw(st.dictionaries(keys, st.integers(0, 255), min_size=1, max_size=30))
    other = HashMap(bits, value_serializer=lambda value, to: to.store_uint(value, 8))
    for key, value in wanted.items():
        other.set_int_key(key, value)
    root = other.serialize()
    assert root is not None
    tree = parse_boc(root.to_boc())
    found = [(key, value.load_uint(8)) for key, value in iter_hashmap(tree, 0, bits)]
    assert found == sorted(wanted.items())
    inline = parse_boc(Builder().store_bit(1).store_cell(root).store_uint(5, 4).end_cell().to_boc())
    start = inline.slice(0)
    assert start.load_bit()
    found = [(key, value.load_uint(8)) for key, value in iter_hashmap_slice(start, bits)]
    assert found == sorted(wanted.items())
    assert start.load_uint(4) == 5


def _fork(tree: CellTree, zero: int, one: int) -> int:
    return append_cell(tree, 0, 2, (zero, one))


def test_pruned_branches_are_skipped_only_on_demand(tree: CellTree) -> None:
    leaf = append_cell(tree, 0b00_11, 4, ())
    root = _fork(tree, leaf, end_pruned(tree, 1, [bytes(32)], [0]))
    found = [key for key, _ in iter_hashmap(tree, root, 1, skip_pruned=True)]
    assert found == [0]
    with pytest.raises(BocError, match="pruned"):
        list(iter_hashmap(tree, root, 1))


@pytest.mark.parametrize(
    ("value", "bits"), [(0b0_1110, 5), (0b10_11, 4), (0b11_0_11, 5), (0b0_111, 4)]
)
def test_labels_longer_than_the_key_are_refused(tree: CellTree, value: int, bits: int) -> None:
    root = append_cell(tree, value, bits, ())
    with pytest.raises(BocError):
        list(iter_hashmap(tree, root, 2))


def test_forks_need_two_references(tree: CellTree) -> None:
    leaf = append_cell(tree, 0, 2, ())
    with pytest.raises(BocError):
        list(iter_hashmap(tree, append_cell(tree, 0, 2, (leaf,)), 1))


def test_a_few_cells_cannot_stand_for_endless_keys(tree: CellTree) -> None:
    cell = CellBuilder(tree).store_uint(0, 2).end()
    for _ in range(256):
        cell = _fork(tree, cell, cell)
    with pytest.raises(BocError, match="too often"):
        list(iter_hashmap(tree, cell, 256))


def test_equal_values_may_share_cells(tree: CellTree) -> None:
    cell = CellBuilder(tree).store_uint(0, 2).end()
    for _ in range(10):
        cell = _fork(tree, cell, cell)
    assert [key for key, _ in iter_hashmap(tree, cell, 10)] == list(range(1024))


def _values(tree: CellTree, keys: list[int]) -> list[tuple[int, int]]:
    return [(key, CellBuilder(tree).store_uint(key, 256).end()) for key in keys]


@given(st.sampled_from([1, 2, 8, 15, 32, 64, 256]), st.data())
def test_other_writers_give_the_same_cell(key_bits: int, data: st.DataObject) -> None:
    wide = st.integers(0, (1 << key_bits) - 1)
    near = st.integers(0, min(40, (1 << key_bits) - 1))
    keys = sorted(data.draw(st.sets(wide | near, min_size=1, max_size=30)))
    tree = CellTree()
    root = build_hashmap(tree, _values(tree, keys), key_bits)
    read = [
        (key, tree.slice(value.load_ref()).load_uint(256))
        for key, value in iter_hashmap(tree, root, key_bits)
    ]
    assert read == [(key, key) for key in keys]
    oracle = HashMap(key_bits, value_serializer=lambda cell, into: into.store_ref(cell))
    for key in keys:
        oracle.set_int_key(key, Builder().store_uint(key, 256).end_cell())
    expected = oracle.serialize()
    assert expected is not None
    assert Cell.one_from_boc(serialize_boc(tree, [root])).hash == expected.hash


@pytest.mark.parametrize("keys", [[], [2, 1], [1, 1], [-1], [4]])
def test_keys_must_ascend_and_fit(tree: CellTree, keys: list[int]) -> None:
    value = CellBuilder(tree).end()
    with pytest.raises(BocError):
        build_hashmap(tree, [(key, value) for key in keys], 2)

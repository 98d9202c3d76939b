"""Hash maps as the node writes them: read back by our reader, compared with another writer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Builder, Cell, HashMap

from tonlake.ingest.decode.cell.boc import BocError
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import build_hashmap, iter_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc


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
def test_keys_must_ascend_and_fit(keys: list[int]) -> None:
    tree = CellTree()
    value = CellBuilder(tree).end()
    with pytest.raises(BocError):
        build_hashmap(tree, [(key, value) for key in keys], 2)

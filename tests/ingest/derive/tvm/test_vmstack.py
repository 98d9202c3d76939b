"""Stack values as cells, read back by another implementation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Cell, Slice
from pytoniq_core.tlb.vm_stack import VmStackValue, VmTuple

from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.tvm.stack import TvmCell, TvmOpaque, TvmSlice, serialize_value

BAG = serialize_single(b"\x00\x04\xab\xcd")
INTEGERS = st.integers(-(1 << 256), (1 << 256) - 1) | st.integers(-10, 10)
LEAVES = st.none() | INTEGERS | st.sampled_from([TvmCell(BAG), TvmSlice(BAG)])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5).map(tuple) | st.lists(inner, min_size=1)
)


def simplify(value: Any) -> Any:
    """Return a value of pytoniq in our form; a pair that ends in null is one of our lists."""
    if isinstance(value, VmTuple):
        return tuple(simplify(item) for item in value.list)
    if isinstance(value, Slice):
        return TvmSlice(value.to_cell().to_boc())
    return TvmCell(value.to_boc()) if isinstance(value, Cell) else value


def pair_up(value: Any) -> Any:
    """Return a value with its lists as pairs, and its bags as pytoniq writes them."""
    if isinstance(value, list):
        pairs: Any = None
        for item in reversed(value):
            pairs = (pair_up(item), pairs)
        return pairs
    if isinstance(value, tuple):
        return tuple(map(pair_up, value))
    if isinstance(value, TvmCell | TvmSlice):
        return type(value)(Cell.one_from_boc(value.boc).to_boc())
    return value


@given(VALUES)
def test_values_are_read_back(value: Any) -> None:
    cell = Cell.one_from_boc(serialize_value(value))
    assert simplify(VmStackValue.deserialize(cell.begin_parse())) == pair_up(value)


def test_values_without_a_representation() -> None:
    with pytest.raises(TypeError, match="TvmOpaque"):
        serialize_value(TvmOpaque())

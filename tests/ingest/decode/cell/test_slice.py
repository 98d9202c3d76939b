"""Slices read back what builders stored, and never more."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytoniq_core import Cell

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, CellUnderflow

FIELDS = st.one_of(
    st.tuples(st.just("uint"), st.integers(0, (1 << 64) - 1), st.just(64)),
    st.tuples(st.just("int"), st.integers(-(1 << 31), (1 << 31) - 1), st.just(32)),
    st.tuples(st.just("bit"), st.booleans(), st.just(1)),
    st.tuples(st.just("bytes"), st.binary(max_size=8), st.just(0)),
    st.tuples(st.just("coins"), st.integers(0, (1 << 120) - 1), st.just(0)),
    st.tuples(st.just("var_uint"), st.integers(0, (1 << 48) - 1), st.just(3)),
)


@settings(max_examples=150)
@given(st.lists(FIELDS, max_size=7))
def test_fields_come_back(fields: list[tuple[str, object, int]]) -> None:
    builder = CellBuilder()
    for kind, value, bits in fields:
        store = getattr(builder, f"store_{kind}")
        store(value, bits) if kind in ("uint", "int", "var_uint") else store(value)
    cell = builder.end()
    tree = builder.tree
    start = tree.slice(cell)
    other = Cell.one_from_boc(serialize_boc(tree, [cell])).begin_parse()
    for kind, value, bits in fields:
        if kind == "bytes":
            assert start.load_bytes(len(value)) == value  # type: ignore[arg-type]
            other.load_bits(8 * len(value))
        elif kind in ("bit", "coins"):
            assert getattr(start, f"load_{kind}")() == value == getattr(other, f"load_{kind}")()
        else:
            assert getattr(start, f"load_{kind}")(bits) == value
            other.load_var_uint(bits) if kind == "var_uint" else other.load_bits(bits)
    assert start.bits_left == 0 == len(other.bits)
    assert start.pos == builder.bits
    with pytest.raises(CellUnderflow):
        start.load_bit()


def test_references_come_back_in_order(tree: CellTree) -> None:
    kids = [CellBuilder(tree).store_uint(number, 8).end() for number in range(3)]
    builder = CellBuilder(tree).store_maybe_ref(kids[0]).store_maybe_ref(None)
    start = tree.slice(builder.store_ref(kids[1]).store_ref(kids[2]).end())
    assert start.load_maybe_ref() == kids[0]
    assert start.load_maybe_ref() is None
    twin = start.copy()
    assert (start.load_ref(), start.load_ref(), start.refs_left) == (kids[1], kids[2], 0)
    assert (twin.refs_left, twin.load_ref()) == (2, kids[1])
    with pytest.raises(CellUnderflow, match="a reference"):
        start.load_ref()


def test_peeking_and_skipping_do_not_pass_the_end() -> None:
    builder = CellBuilder().store_uint(0b1011, 4)
    start = builder.tree.slice(builder.end())
    assert start.peek_uint(2) == 0b10
    start.skip(1)
    assert start.load_int(3) == 0b011
    for read in (start.peek_uint, start.skip, start.load_uint):
        with pytest.raises(CellUnderflow):
            read(1)


def test_builders_refuse_what_does_not_fit(tree: CellTree) -> None:
    builder = CellBuilder()
    for value, bits in ((8, 3), (-1, 3)):
        with pytest.raises(BocError):
            builder.store_uint(value, bits)
    for value in (4, -5):
        with pytest.raises(BocError):
            builder.store_int(value, 3)
    with pytest.raises(BocError):
        builder.store_coins(1 << 120)
    with pytest.raises(BocError, match="1024 bits"):
        CellBuilder().store_uint(0, 1024).end()
    kid = CellBuilder(tree).end()
    with pytest.raises(BocError, match="5 references"):
        CellBuilder(tree).store_ref(kid).store_ref(kid).store_ref(kid).store_ref(kid).store_ref(
            kid
        ).end()
    with pytest.raises(BocError, match="another tree"):
        CellBuilder().store_slice(tree.slice(kid))


def test_the_rest_of_a_slice_can_be_stored(tree: CellTree) -> None:
    kids = [CellBuilder(tree).store_uint(number, 8).end() for number in range(2)]
    builder = CellBuilder(tree).store_uint(0xABC, 12).store_ref(kids[0]).store_ref(kids[1])
    start = tree.slice(builder.end())
    start.skip(4)
    start.load_ref()
    copy = CellBuilder(tree).store_slice(start).end()
    assert tree.bits(copy) == (0xBC, 8)
    assert list(tree.links[copy]) == [kids[1]]

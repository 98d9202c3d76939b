"""Bags of cells: every form is read, false fields are refused, bombs cost nothing."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytoniq_core import Cell

from tests.damage import flip
from tests.ingest.decode.cell.samples import GENERIC, INDEXED, INDEXED_CRC, trees, write_form
from tonlake.ingest.decode.cell import envelope
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell
from tonlake.ingest.decode.cell.envelope import MAX_ROOTS, crc32c
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import add_crc32c, canonical_order, serialize_boc
from tonlake.ingest.errors import BocError

EMPTY = bytes.fromhex("b5ee9c72010101010002000000")


def _chain(count: int) -> bytes:
    """A bag of cells, each of which refers to the next."""
    cells = b"".join(b"\x01\x00" + at.to_bytes(2, "big") for at in range(1, count)) + b"\x00\x00"
    head = GENERIC + bytes((2, 2)) + count.to_bytes(2, "big") + b"\x00\x01\x00\x00"
    return head + len(cells).to_bytes(2, "big") + b"\x00\x00" + cells


def test_crc32c_of_the_check_string() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=300))
def test_crc32c_is_the_same_without_the_extension(data: bytes) -> None:
    found = crc32c(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "NATIVE", None)
        assert crc32c(data) == found


@settings(max_examples=60, deadline=None)
@given(trees(), st.booleans())
def test_writer_and_reader_agree(sample: tuple[CellTree, int], crc: bool) -> None:  # noqa: FBT001
    tree, root = sample
    bag = serialize_boc(tree, [root], crc32c=crc)
    again = parse_boc(bag)
    assert again.hash(again.roots[0]) == tree.hash(root)
    assert serialize_boc(again, again.roots, crc32c=crc) == bag
    plain = serialize_boc(again, again.roots)
    assert parse_boc(add_crc32c(plain)).cells == again.cells


@settings(max_examples=100, deadline=None)
@given(trees(exotic=False))
def test_other_reader_and_writer_agree(sample: tuple[CellTree, int]) -> None:
    tree, root = sample
    other = Cell.one_from_boc(serialize_boc(tree, [root], crc32c=True))
    assert other.hash == tree.hash(root)
    again = parse_boc(other.to_boc(has_idx=True))
    assert again.hash(again.roots[0]) == tree.hash(root)


@settings(max_examples=60, deadline=None)
@given(trees(), st.data())
def test_every_form_reads(sample: tuple[CellTree, int], data: st.DataObject) -> None:
    tree, root = sample
    magic = data.draw(st.sampled_from([GENERIC, INDEXED, INDEXED_CRC]))
    generic = magic == GENERIC
    index = data.draw(st.booleans()) if generic else True
    roots = [root, 0, root] if generic and data.draw(st.booleans()) else [root]
    bag = (
        write_form(
            tree,
            order := canonical_order(tree, roots).cells,
            [cell for cell in roots if cell in order] or [root],
            magic=magic,
            width=data.draw(st.integers(1, 4)),
            offset_width=data.draw(st.integers(2, 8)),
            index=index,
            crc=data.draw(st.booleans()),
            cache_bits=index and generic and data.draw(st.booleans()),
            hashes=data.draw(st.booleans()),
        )
        if not canonical_order(tree, roots).twins
        else serialize_boc(tree, roots)
    )
    again = parse_boc(bag)
    assert again.hash(again.roots[0]) == tree.hash(root)
    again.hash(0)


def test_hashes_in_cells_are_checked(tree: CellTree) -> None:
    leaf = append_cell(tree, 5, 8, ())
    root = append_cell(tree, 1, 3, (leaf,))
    bag = write_form(tree, [root, leaf], [root], hashes=True)
    assert parse_boc(bag).hash(0) == tree.hash(root)
    with pytest.raises(BocError, match="not its own"):
        parse_boc(flip(bag, bag.index(tree.hash(leaf)))).hash(0)


REFUSED = {
    "nothing": "",
    "other magic": "b5ee9c73010101010002000000",
    "head cut": "b5ee9c7201",
    "reference of 0 bytes": "b5ee9c7200010101000200000000",
    "reference of 5 bytes": "b5ee9c72050100000000010000000001000000000002000000000000000",
    "offset of 9 bytes": "b5ee9c720109010100000000000000000002000000",
    "no cells": "b5ee9c7201010001000000",
    "no roots": "b5ee9c720101010000020000",
    "cache bits without index": "b5ee9c7221010101000200000000",
    "unknown flag": "b5ee9c7209010101000200000000",
    "root out of range": "b5ee9c72010101010002010000",
    "absent cell counted": "b5ee9c72010101010102000000",
    "one byte too many": "b5ee9c7201010101000200000000",
    "one byte too few": "b5ee9c720101010100020000",
    "self reference": "b5ee9c7201010101000300010000",
    "reference back": "b5ee9c72010102010006000100010100" + "00",
    "reference out of range": "b5ee9c7201010101000300010009",
    "five references": "b5ee9c7201010101000700050000000000" + "00",
    "absent cell": "b5ee9c72010101010002001700",
    "no end tag": "b5ee9c72010101010003000001" + "00",
    "data a byte too long": "b5ee9c7201010101000300000180",
    "wrong level": "b5ee9c72010101010002002000",
    "exotic without type": "b5ee9c72010101010002000800",
    "exotic of unknown type": "b5ee9c7201010101000300080209",
    "pruned without mask": "b5ee9c7201010101000300280201",
    "pruned with mask 0": "b5ee9c720101010100040008040100",
    "library too short": "b5ee9c72010101010004000804" + "0200",
    "wrong crc": "b5ee9c7241010101000200000000000000",
    "claims 2^40 bytes": "b5ee9c72040800ffffff000000010000000000000100000000000000000000000000",
}


@pytest.mark.parametrize("bag", REFUSED.values(), ids=list(REFUSED))
def test_lies_are_refused(bag: str) -> None:
    with pytest.raises(BocError):
        parse_boc(bytes.fromhex(bag[: len(bag) // 2 * 2]))


def test_the_smallest_bag_reads_and_is_written() -> None:
    tree = parse_boc(EMPTY)
    assert (tree.count, tree.bit_length(0), tree.links[0]) == (1, 0, ())
    assert serialize_boc(tree, [0]) == EMPTY


def test_the_crc_may_be_left_to_the_caller() -> None:
    bag = add_crc32c(EMPTY)
    assert parse_boc(bag).count == 1
    spoiled = flip(bag, -1)
    assert parse_boc(spoiled, check_crc=False).count == 1
    with pytest.raises(BocError, match="CRC"):
        parse_boc(spoiled)


@pytest.mark.parametrize(("count", "reads"), [(1024, True), (1025, True), (1026, False)])
def test_depth_is_bounded(count: int, reads: bool) -> None:  # noqa: FBT001
    bag = _chain(count)
    if reads:
        tree = parse_boc(bag)
        assert tree.depth(0) == count - 1
        assert serialize_boc(tree, [0]) == bag
    else:
        with pytest.raises(BocError, match="deeper than 1024"):
            parse_boc(bag)


@pytest.mark.parametrize("count", [MAX_ROOTS, MAX_ROOTS + 1])
def test_roots_are_bounded(count: int) -> None:
    bag = GENERIC + bytes((2, 2)) + b"\x00\x01" + count.to_bytes(2, "big") + b"\x00\x00\x00\x02"
    bag += b"\x00\x00" * count + b"\x00\x00"
    if count <= MAX_ROOTS:
        assert len(parse_boc(bag).roots) == count
    else:
        with pytest.raises(BocError, match="roots"):
            parse_boc(bag)


@pytest.mark.parametrize("count", [8, 24, 256, 1024])
def test_shared_cells_cost_no_more_than_their_number(tree: CellTree, count: int) -> None:
    cell = append_cell(tree, 0, 0, ())
    for _ in range(count - 1):
        cell = append_cell(tree, 0, 0, (cell,) * 4)
    bag = serialize_boc(tree, [cell])
    again = parse_boc(bag)
    assert again.count == count
    assert again.hash(again.roots[0]) == tree.hash(cell)
    assert serialize_boc(again, again.roots) == bag


def test_a_lie_about_size_allocates_nothing() -> None:
    bag = bytes.fromhex("b5ee9c7204 05 0fffffff 00000001 00000000 ff ffffffff".replace(" ", ""))
    tracemalloc.start()
    try:
        with pytest.raises(BocError):
            parse_boc(bag)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()

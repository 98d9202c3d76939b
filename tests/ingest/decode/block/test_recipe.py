"""Transaction bags rebuilt from rows, and bags stored whole because that is impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.decode.block.samples import Columns, Fields
from tests.ingest.decode.block.test_message import messages
from tests.ingest.decode.block.test_transaction import store_transaction, take_bag
from tonlake.ingest.decode.block.recipe import (
    Layout,
    read_recipe,
    rebuild_transaction,
    write_recipe,
)
from tonlake.ingest.decode.block.transaction import decode_transaction
from tonlake.ingest.decode.cell.boc import serialize_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN_STD = (0b100 << 264, 267)


def _store_message(tree: CellTree, head: tuple[int, int], tail: tuple[int, int] = (0, 2)) -> int:
    """An internal message: flags and source, destination, amounts; then init and body."""
    builder = CellBuilder(tree).store_uint(0, 4).store_uint(*PLAIN_STD).store_uint(*head)
    return builder.store_uint(0, 4 + 1 + 4 + 4 + 64 + 32).store_uint(*tail).end()


def wrap_plain(tree: CellTree, message: int) -> bytes:
    """The bag of the simplest transaction that takes a message."""
    builder = CellBuilder(tree).store_uint(7, 4).store_uint(0, 256 + 64 + 256 + 64 + 32 + 15 + 4)
    builder.store_ref(append_cell(tree, 2, 2, (message,))).store_uint(0, 4 + 1)
    builder.store_ref(append_cell(tree, 0x72 << 512, 520, ()))
    cell = builder.store_ref(append_cell(tree, 0, 5 + 2 + 3 + 4, ())).end()
    return serialize_boc(tree, [cell])


def _wrap_outs(count: int, announced: int) -> bytes:
    """The bag of a transaction that sends messages, which it announces as so many."""
    tree = CellTree()
    outs = [(key, _store_message(tree, (0b100 << 264 | key, 267))) for key in range(count)]
    holder = append_cell(tree, 1, 2, (build_hashmap(tree, outs, 15),))
    builder = CellBuilder(tree).store_uint(7, 4).store_uint(0, 256 + 64 + 256 + 64 + 32)
    builder.store_uint(announced, 15).store_uint(0, 4).store_ref(holder).store_uint(0, 4 + 1)
    builder.store_ref(append_cell(tree, 0x72 << 512, 520, ()))
    cell = builder.store_ref(append_cell(tree, 0, 5 + 2 + 3 + 4, ())).end()
    return serialize_boc(tree, [cell])


@st.composite
def wrapped(draw: st.DrawFn) -> tuple[bytes, int, int | None]:
    """The bag of a transaction around messages of any kind, their number, and the version."""
    tree, cell, _columns, version = draw(messages())
    count = draw(st.integers(0, 40))
    inner = Fields(draw, tree)
    inner.builder.store_uint(0, 5).store_uint(0, 2).store_uint(0, 1 + 2).store_uint(0, 4)
    outs = (cell,) * count
    root = store_transaction(Fields(draw, tree), inner.builder.end(), in_msg=cell, out_msgs=outs)
    return serialize_boc(tree, [root]), 1 + count, version


@settings(max_examples=100, deadline=None)
@given(wrapped())
def test_whatever_the_messages_are_the_bag_comes_back(
    sample: tuple[bytes, int, int | None],
) -> None:
    bag, count, version = sample
    row, lines = decode_transaction(bag, global_version=version)
    assert len(lines) == count
    assert take_bag(row, lines[::-1]) == bag


@pytest.mark.parametrize(
    ("head", "tail", "is_usual"),
    [
        (PLAIN_STD, (0, 2), True),
        ((0, 2), (0, 2), True),  # addr_none
        ((0b01_000000111_1010101, 18), (0, 2), False),  # addr_extern of an internal message
        ((0b101_00001_1 << 264, 273), (0, 2), False),  # anycast
        ((0b11_0 << 9 + 32, 44), (0, 2), False),  # addr_var
        (PLAIN_STD, (0b10 << 6, 8), True),  # a StateInit of nothing, and a body of a bit
    ],
)
def test_bags_that_rows_do_not_determine_are_stored(
    head: tuple[int, int], tail: tuple[int, int], *, is_usual: bool
) -> None:
    tree = CellTree()
    bag = wrap_plain(tree, _store_message(tree, head, tail))
    row, lines = decode_transaction(bag)
    assert (row["recipe"] is not None) == is_usual
    assert take_bag(row, lines) == bag


def _lengthen_amount(builder: CellBuilder) -> None:
    builder.store_uint(1, 4).store_uint(0, 8)


def _end_early(builder: CellBuilder) -> None:
    builder.store_uint(0, 4)


@pytest.mark.parametrize(
    ("store_fees", "is_usual"), [(_lengthen_amount, False), (_end_early, True)]
)
def test_amounts_that_are_too_long_are_kept(
    store_fees: Callable[[CellBuilder], None], *, is_usual: bool
) -> None:
    tree = CellTree()
    builder = CellBuilder(tree).store_uint(7, 4).store_uint(0, 256 + 64 + 256 + 64 + 32 + 15 + 4)
    builder.store_ref(append_cell(tree, 0, 2, ()))
    store_fees(builder)
    builder.store_uint(0, 1).store_ref(append_cell(tree, 0x72 << 512, 520, ()))
    cell = builder.store_ref(append_cell(tree, 0, 5 + 2 + 3 + 4, ())).end()
    bag = serialize_boc(tree, [cell])
    row, lines = decode_transaction(bag)
    assert (row["recipe"] is not None) == is_usual
    assert take_bag(row, lines) == bag


@pytest.mark.parametrize("count", [1, 2, 255, 256, 300])
def test_many_messages_stand_in_their_order(count: int) -> None:
    bag = _wrap_outs(count, count)
    row, lines = decode_transaction(bag)
    assert row["recipe"] is not None
    assert [line["msg_index"] for line in lines] == list(range(count))
    assert [line["destination"] for line in lines] == [n.to_bytes(32, "big") for n in range(count)]
    assert rebuild_transaction(row, lines) == bag


@pytest.mark.parametrize("announced", [0, 1, 3, 32_767])
def test_messages_are_as_many_as_announced(announced: int) -> None:
    with pytest.raises(DecodeError, match=f"{announced} out messages declared"):
        decode_transaction(_wrap_outs(2, announced))


def _make_rows() -> tuple[Columns, list[Columns]]:
    tree = CellTree()
    return decode_transaction(wrap_plain(tree, _store_message(tree, PLAIN_STD)))


@pytest.mark.parametrize(
    ("of_message", "change", "says"),
    [
        (False, {"now": 5}, "its rows yield"),
        (False, {"lt": -1}, "its rows are damaged"),
        (False, {"recipe": b""}, "its recipe is not for 1 messages"),
        (True, {"body": b"\x00"}, "its rows are damaged"),
        (True, {"source_kind": "var"}, "a message does not follow from its row"),
        (True, {"value": 7}, "its rows yield"),
    ],
)
def test_rows_that_are_damaged_give_no_bag(*, of_message: bool, change: Columns, says: str) -> None:
    row, lines = _make_rows()
    if of_message:
        lines = [lines[0] | change]
    else:
        row |= change
    with pytest.raises(DecodeError, match=says):
        rebuild_transaction(row, lines)


def test_a_message_row_that_is_missing_gives_no_bag() -> None:
    row, _ = _make_rows()
    with pytest.raises(DecodeError, match="its recipe is not for 0 messages"):
        rebuild_transaction(row, [])


@given(
    st.lists(
        st.builds(
            Layout,
            st.sampled_from([0, 1]),
            st.sampled_from([0, 1]),
            st.none()
            | st.integers(0, 520).flatmap(
                lambda bits: st.tuples(st.integers(0, (1 << bits) - 1), st.just(bits))
            ),
        )
    )
)
def test_recipes_are_read_as_they_were_written(layouts: list[Layout]) -> None:
    recipe = write_recipe(layouts)
    assert recipe is not None
    found = read_recipe(recipe, len(layouts))
    assert [(bool(one), bool(two), three) for one, two, three in found] == layouts

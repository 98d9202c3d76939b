"""The work that a body takes: bounded by its cells, whatever their shape."""

import sys
from typing import Any

import pytest
from pytoniq_core import Cell, StateInit, begin_cell

from tests.ingest.derive.body.test_reports import W5_EXTERNAL, list_actions, request_w5, send
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.body import decode_body

CALLS_PER_CELL, SPARE_CALLS = 7, 50


def chain(opcode: int, count: int, odd: int = 0) -> Any:
    """Build a body of cells below each other, of whole bytes and ``odd`` bits."""
    cell = begin_cell().end_cell()
    for number in range(count):
        node = begin_cell().store_bytes(b"%9d" % number * 13).store_bits("0" * odd)
        cell = node.store_ref(cell).end_cell()
    return begin_cell().store_uint(opcode, 32).store_ref(cell).end_cell()


def deploy(number: int) -> Any:
    part = begin_cell().store_uint((1 << 299) + number, 300).end_cell()
    init = StateInit(code=part, data=begin_cell().store_ref(part).end_cell())
    return send(number, init)


def nest(levels: int) -> Any:
    """Build requests to wallets, each inside the three messages of another."""
    body = begin_cell().end_cell()
    for _ in range(levels):
        message = begin_cell().store_uint(0x18, 6).store_uint(0, 2 + 4 + 1 + 4 + 4 + 64 + 32 + 1)
        message = message.store_bit(1).store_ref(body).end_cell()
        body = request_w5(W5_EXTERNAL, list_actions([message] * 3))
    return body


def bush(count: int) -> Any:
    """Build a transfer of jettons with a raw payload, a tree of small cells."""
    cells = [begin_cell().store_uint(number, 16) for number in range(count)]
    for number in range(count - 1, 0, -1):
        cells[(number - 1) // 4].store_ref(cells[number].end_cell())
    body = begin_cell().store_uint(0x0F8A7EA5, 32).store_uint(0, 64 + 4 + 2 + 2).store_bit(1)
    return body.store_ref(cells[0].end_cell()).store_uint(0, 4 + 1).end_cell()


LEAF = begin_cell().store_uint(0, 34).end_cell()
LARGE = begin_cell().store_uint(0, 2).store_ref(chain(0, 150)).end_cell()


@pytest.mark.parametrize(
    ("body", "is_decoded"),
    [
        (request_w5(W5_EXTERNAL, list_actions([deploy(number) for number in range(255)])), True),
        (nest(9), False),
        (chain(0xDEADBEEF, 500), False),
        (chain(0x53684037, 500), False),  # shown raw
        (bush(500), True),
        (bush(3000), False),
        (chain(0, 500), True),
        (chain(0, 500, odd=3), True),
    ],
)
def test_calls_are_bounded_by_the_cells(body: Cell, *, is_decoded: bool) -> None:
    tree = parse_boc(body.to_boc())
    check(tree, tree.roots[0], is_decoded=is_decoded)


@pytest.mark.parametrize(
    ("opcode", "number_bits", "leaf", "levels", "refs"),
    [(0x73403C43, 64, LEAF, 32, 2), (0x012E8F40, 0, LARGE, 8, 2), (0x012E8F40, 0, LEAF, 500, 4)],
)
def test_calls_do_not_grow_with_shared_cells(
    opcode: int, number_bits: int, leaf: Cell, levels: int, refs: int
) -> None:
    tree = CellTree()
    node = graft(tree, parse_boc(leaf.to_boc()))
    for _ in range(levels):
        cell = CellBuilder(tree).store_uint(0, 2)
        for _ in range(refs):
            cell.store_ref(node)
        node = cell.end()
    body = CellBuilder(tree).store_uint(opcode, 32).store_uint(0, number_bits).store_maybe_ref(node)
    check(tree, body.store_uint(0, 1 if number_bits else 0).end(), is_decoded=False)


def check(tree: CellTree, cell: int, *, is_decoded: bool) -> None:
    cells = tree.count
    decode_body(tree, cell)  # compiles the layouts
    events: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    try:
        found = decode_body(tree, cell)
    finally:
        sys.setprofile(None)
    assert events.count("call") <= CALLS_PER_CELL * cells + SPARE_CALLS
    assert (found.json is not None) == is_decoded

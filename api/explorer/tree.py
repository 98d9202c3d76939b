"""A trace as a picture: transactions as boxes in columns, messages as lines between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.api.explorer.form import clip, write_brief
from tonlake.api.explorer.message import name_call, write_opcode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.api.explorer.names import Names
    from tonlake.api.v3.layout.message import Message
    from tonlake.api.v3.layout.transaction import Transaction

BOX_WIDTH, BOX_HEIGHT = 176, 48
COLUMN, ROW = 296, 66
"""From one box to the next, across and down."""

MARGIN = 8
MOST_BOXES = 400
"""Transactions of a picture; a larger trace shows its first ones."""

TURN, CORNER = 12, 6
"""Where a line turns down, and how round."""

MOST_LABEL_CHARACTERS = 23


class Box(msgspec.Struct, frozen=True):
    """A transaction and its place in the picture."""

    x: int
    y: int
    tx_hash: str
    label: str
    call: str
    success: bool


class Edge(msgspec.Struct, frozen=True):
    """A message from one box to another: the line, and where its value is written."""

    path: str
    x: int
    y: int
    value: str
    opcode: str
    bounced: bool


class Tree(msgspec.Struct, frozen=True):
    """The picture of a trace; ``hidden`` transactions did not fit."""

    boxes: list[Box]
    edges: list[Edge]
    width: int
    height: int
    hidden: int


Placed = list[tuple["Transaction", int, int]]
"""Transactions with their column and row."""


def draw_tree(transactions: Sequence[Transaction], names: Names) -> Tree:
    """Return the picture of a trace; ``transactions`` by logical time, its root first."""
    shown = transactions[:MOST_BOXES]
    placed = place_tree(shown)
    boxes = {each.hash: _draw_box(each, column, row, names) for each, column, row in placed}
    parents = _find_parents(shown)
    edges = [
        _draw_edge(boxes[parents[each.hash]], boxes[each.hash], each.in_msg)
        for each, _column, _row in placed
        if each.hash in parents and each.in_msg is not None
    ]
    return Tree(
        list(boxes.values()),
        edges,
        width=max(box.x for box in boxes.values()) + BOX_WIDTH + MARGIN,
        height=max(box.y for box in boxes.values()) + BOX_HEIGHT + MARGIN,
        hidden=len(transactions) - len(shown),
    )


def place_tree(transactions: Sequence[Transaction]) -> Placed:
    """Return each transaction with its column (depth) and a row, parents before children.

    The first child stands beside its parent, each further one in a row of its own.
    """
    parents = _find_parents(transactions)
    children: dict[str, list[Transaction]] = {each.hash: [] for each in transactions}
    for each in transactions:
        if each.hash in parents:
            children[parents[each.hash]].append(each)
    placed: Placed = []
    rows = -1
    todo = [(each, 0, False) for each in reversed(transactions) if each.hash not in parents]
    while todo:
        each, column, beside = todo.pop()
        rows += 0 if beside else 1
        placed.append((each, column, rows))
        kids = children[each.hash]
        todo += [(kid, column + 1, at == 0) for at, kid in reversed(list(enumerate(kids)))]
    return placed


def _find_parents(transactions: Sequence[Transaction]) -> dict[str, str]:
    """Return the transaction that sent each one's message, where it is among them."""
    senders = {message.hash: each.hash for each in transactions for message in each.out_msgs}
    return {
        each.hash: senders[each.in_msg.hash]
        for each in transactions
        if each.in_msg is not None and each.in_msg.hash in senders
    }


def _draw_box(transaction: Transaction, column: int, row: int, names: Names) -> Box:
    call = name_call(transaction.in_msg) or transaction.description.type
    return Box(
        x=MARGIN + column * COLUMN,
        y=MARGIN + row * ROW,
        tx_hash=transaction.hash,
        label=clip(names.label(transaction.account), MOST_LABEL_CHARACTERS),
        call=clip(call, MOST_LABEL_CHARACTERS),
        success=not transaction.description.aborted,
    )


def _draw_edge(start: Box, end: Box, message: Message) -> Edge:
    x1, y1 = start.x + BOX_WIDTH, start.y + BOX_HEIGHT // 2
    x2, y2 = end.x, end.y + BOX_HEIGHT // 2
    path = f"M{x1} {y1}H{x2}"
    if y1 != y2:
        turn = x1 + TURN
        path = f"M{x1} {y1}H{turn - CORNER}Q{turn} {y1} {turn} {y1 + CORNER}"
        path += f"V{y2 - CORNER}Q{turn} {y2} {turn + CORNER} {y2}H{x2}"
    return Edge(
        path,
        x=x2 - MARGIN,
        y=y2 - MARGIN // 2,
        value="" if message.value is None else write_brief(int(message.value)),
        opcode=write_opcode(message.opcode),
        bounced=bool(message.bounced),
    )

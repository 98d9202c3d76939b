"""Geometry of the pictures: lines, bars, calendars and traces; templates turn it into SVG."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from tonlake.api.explorer.form import clip, name_call, write_brief, write_opcode
from tonlake.api.explorer.outcome import Outcome, judge_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.api.explorer.sentence import Names
    from tonlake.api.v3.layout.message import Message
    from tonlake.api.v3.layout.transaction import Transaction

WIDTH, HEIGHT, EDGE = 720, 180, 2
"""Size of a line chart in units of its own, and what it keeps free above and below."""

CELL = 14
"""Side of a day in the calendar, gap included."""

WEEK_DAYS = 7
MOST_WEEKS = 54
SHADES = 4


class Line(msgspec.Struct, frozen=True):
    """A stepped line: paths of line and area, and the ends of both axes."""

    line: str
    area: str
    low: int
    high: int
    first_utime: int
    last_utime: int


class Slice(msgspec.Struct, frozen=True):
    """A piece of a bar: its name, its number, its place in percent, and its colour."""

    name: str
    number: int
    start: float
    width: float
    shade: int


class Day(msgspec.Struct, frozen=True):
    """A day of a calendar; ``shade`` 0 is a day without rows."""

    day: date
    rows: int
    x: int
    y: int
    shade: int


class Calendar(msgspec.Struct, frozen=True):
    """Days in columns of weeks, Monday first, and the months above them."""

    days: list[Day]
    months: list[tuple[int, str]]
    width: int
    earlier: int
    """Days with rows before the first one shown."""


def plot_steps(points: Sequence[tuple[int, int]]) -> Line | None:
    """Return the line through (Unix seconds, amount), oldest first; each holds until the next.

    The axis begins at zero, so that heights compare as the amounts do.
    None for less than two points, which make no line.
    """
    if len(points) < 2 or points[0][0] == points[-1][0]:  # noqa: PLR2004
        return None
    amounts = [amount for _utime, amount in points]
    low, high = min(0, *amounts), max(amounts)
    first, last = points[0][0], points[-1][0]

    def place(utime: int, amount: int) -> tuple[float, float]:
        share = (amount - low) / (high - low) if high > low else 0.5
        x = WIDTH * (utime - first) / (last - first)
        return round(x, 1), round(EDGE + (HEIGHT - 2 * EDGE) * (1 - share), 1)

    placed = [place(*point) for point in points]
    steps = [f"M{placed[0][0]} {placed[0][1]}"]
    steps += [f"H{x}V{y}" for x, y in placed[1:]]
    line = "".join(steps)
    return Line(line, f"{line}V{HEIGHT}H0Z", low, high, first, last)


def slice_bar(numbers: Mapping[str, int]) -> list[Slice]:
    """Return the parts of one bar as wide as their sum; parts of nothing are left out."""
    total = sum(numbers.values())
    slices: list[Slice] = []
    start = 0.0
    for shade, (name, number) in enumerate(numbers.items(), 1):
        if number > 0:
            width = 100 * number / total
            slices.append(Slice(name, number, round(start, 3), round(width, 3), shade))
            start += width
    return slices


def fill_calendar(rows_by_day: Mapping[date, int]) -> Calendar | None:
    """Return the days from the first with rows to the last, at most some 54 weeks of them."""
    if not rows_by_day:
        return None
    last = max(rows_by_day)
    monday = last - timedelta(days=last.weekday())
    begin = max(min(rows_by_day), monday - timedelta(weeks=MOST_WEEKS - 1))
    origin = begin - timedelta(days=begin.weekday())
    most = max(rows_by_day.values())
    days = []
    for offset in range((last - origin).days + 1):
        day = origin + timedelta(days=offset)
        if day < begin:
            continue
        rows = rows_by_day.get(day, 0)
        shade = 0 if rows == 0 else min(SHADES, 1 + SHADES * rows // (most + 1))
        x, y = divmod(offset, WEEK_DAYS)
        days.append(Day(day, rows, x * CELL, y * CELL, shade))
    weeks = days[-1].x // CELL + 1
    earlier = sum(1 for day in rows_by_day if day < begin)
    return Calendar(days, _name_months(days), weeks * CELL, earlier)


def _name_months(days: Sequence[Day]) -> list[tuple[int, str]]:
    """Return where months begin, and their names; the first day names its own."""
    found = [(days[0].x, f"{days[0].day:%b %Y}")]
    for before, after in pairwise(days):
        if after.day.month != before.day.month and after.x - found[-1][0] > 3 * CELL:
            found.append((after.x, f"{after.day:%b %Y}"))
    return found


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
    outcome: Outcome


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
        outcome=judge_with(transaction, names),
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

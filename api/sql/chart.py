"""A picture of a result: bars where the first column names things, lines where it measures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.explorer.words.form import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT, BAR_HEIGHT = 720, 260, 24
LEFT, RIGHT, TOP, BOTTOM = 60, 10, 14, 34
NAME_WIDTH = 190
MOST_SERIES, MOST_BARS = 4, 40
KEPT_ENDS = 10
"""Characters of a long name that are shown of either end."""
_NUMBERS = ("int", "uint", "double", "float", "decimal")
_TIMES = ("date", "timestamp")


class Bar(msgspec.Struct, frozen=True):
    """One bar: what it stands for, its number, and its place."""

    name: str
    number: str
    y: int
    width: float


class Series(msgspec.Struct, frozen=True):
    """One column as a line; ``shade`` is its colour."""

    name: str
    path: str
    shade: int


class Chart(msgspec.Struct, frozen=True):
    """Bars of one column, or lines of some; ``x`` and ``y`` name what the axes measure."""

    x: str
    y: str
    bars: list[Bar]
    lines: list[Series]
    height: int
    low: str = ""
    high: str = ""
    first: str = ""
    last: str = ""
    left_out: int = 0
    """Rows that the picture has no room for."""


def draw_chart(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> Chart | None:
    """Return the picture of a result; None where it has no numbers, or no two rows.

    Args:
        columns: Names and Arrow types; the first that is no number to be drawn is the axis.
        rows: Values as JSON has them.
    """
    numeric = [at for at, (_name, kind) in enumerate(columns) if kind.startswith(_NUMBERS)]
    if len(rows) < 2 or len(columns) < 2:  # noqa: PLR2004 - one point is no picture
        return None
    axis = next((at for at in range(len(columns)) if at not in numeric), 0)
    drawn = [at for at in numeric if at != axis][:MOST_SERIES]
    if not drawn:
        return None
    kind = columns[axis][1]
    if axis in numeric or kind.startswith(_TIMES):
        return _draw_lines(columns, rows, axis, drawn)
    return _draw_bars(columns, rows, axis, drawn[0])


def _draw_bars(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], axis: int, at: int
) -> Chart | None:
    known = [(row[axis], float(row[at])) for row in rows if row[at] is not None]
    shown = known[:MOST_BARS]
    most = max((number for _name, number in shown), default=0.0)
    if most <= 0 or any(number < 0 for _name, number in shown):
        return None
    room = WIDTH - NAME_WIDTH - 100
    bars = [
        Bar(_cut(name), _write_number(number), at * BAR_HEIGHT, round(room * number / most, 1))
        for at, (name, number) in enumerate(shown)
    ]
    return Chart(
        columns[axis][0],
        columns[at][0],
        bars,
        [],
        len(bars) * BAR_HEIGHT,
        left_out=len(known) - len(shown),
    )


def _draw_lines(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], axis: int, drawn: list[int]
) -> Chart | None:
    placed = _sort_rows(rows, axis)
    numbers = [float(row[at]) for _place, row in placed for at in drawn if row[at] is not None]
    if not numbers or placed[0][0] == placed[-1][0]:
        return None
    low, high = min(0.0, *numbers), max(numbers)
    first, last = placed[0][0], placed[-1][0]
    span = high - low or 1.0

    def write_path(at: int) -> str:
        points = [
            (
                LEFT + (WIDTH - LEFT - RIGHT) * (place - first) / (last - first),
                HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (float(row[at]) - low) / span,
            )
            for place, row in placed
            if row[at] is not None
        ]
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)

    return Chart(
        columns[axis][0],
        ", ".join(columns[at][0] for at in drawn),
        [],
        [Series(columns[at][0], write_path(at), shade) for shade, at in enumerate(drawn, 1)],
        HEIGHT,
        low=_write_number(low),
        high=_write_number(high),
        first=_cut(placed[0][1][axis]),
        last=_cut(placed[-1][1][axis]),
    )


def _sort_rows(rows: Sequence[Sequence[Any]], axis: int) -> list[tuple[float, Sequence[Any]]]:
    """Return the rows by their place on the axis; those without one are left out."""
    placed = [(_read_place(row[axis]), row) for row in rows]
    known = [(place, row) for place, row in placed if place is not None]
    return sorted(known, key=lambda pair: pair[0])


def _read_place(value: Any) -> float | None:  # noqa: ANN401 - any JSON
    if isinstance(value, int | float):
        return float(value)
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _cut(value: Any) -> str:  # noqa: ANN401 - any JSON
    return "NULL" if value is None else shorten(str(value), KEPT_ENDS)


def _write_number(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.4g}"

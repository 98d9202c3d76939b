"""Computes the geometry of charts (lines, bars, calendars); templates render it as SVG."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, EDGE = 720, 180, 2
"""Size of a line chart in SVG units, and the margin above and below the line."""

CELL = 14
"""Side of one day in the calendar, gap included."""

WEEK_DAYS = 7
MAX_WEEKS = 54
SHADES = 4


class Line(msgspec.Struct, frozen=True):
    """A step chart: SVG paths of the line and the area, and the limits of both axes."""

    line: str
    area: str
    low: int
    high: int
    first_utime: int
    last_utime: int


class Slice(msgspec.Struct, frozen=True):
    """A segment of a stacked bar; ``start`` and ``width`` in percent."""

    name: str
    number: int
    start: float
    width: float
    shade: int


class Day(msgspec.Struct, frozen=True):
    """A day of the calendar; ``shade`` 0 means no rows."""

    day: date
    rows: int
    x: int
    y: int
    shade: int


class Calendar(msgspec.Struct, frozen=True):
    """Days in columns of weeks, Monday first, with month labels."""

    days: list[Day]
    months: list[tuple[int, str]]
    width: int
    earlier: int
    """Days with rows before the first day shown."""


def plot_steps(points: Sequence[tuple[int, int]]) -> Line | None:
    """Return the step line through (Unix seconds, amount), oldest first.

    The axis includes zero, so that heights are proportional to amounts. None if there are
    fewer than two points or all have the same time.
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
    """Return the segments of a stacked bar, in percent of the sum; zeros are left out."""
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
    """Return the days from the first to the last with rows, at most the last 54 weeks."""
    if not rows_by_day:
        return None
    last = max(rows_by_day)
    monday = last - timedelta(days=last.weekday())
    begin = max(min(rows_by_day), monday - timedelta(weeks=MAX_WEEKS - 1))
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
    """Return the x position and name of each month; the first of a year includes the year."""
    year = days[0].day.year
    found = [(days[0].x, f"{days[0].day:%b %Y}")]
    for before, after in pairwise(days):
        room = (5 if " " in found[-1][1] else 3) * CELL
        if after.day.month != before.day.month and after.x - found[-1][0] >= room:
            found.append(
                (after.x, f"{after.day:%b %Y}" if after.day.year > year else f"{after.day:%b}")
            )
            year = after.day.year
    return found

"""Draws a query result as bars, a line or points, as chosen by the reader or the query."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import Any

import msgspec

from tonlake.api.explorer.words.form import shorten
from tonlake.queries.loader import Chart

MAX_MARKS = 6
"""Maximum marks per axis."""

_SECOND_STEPS = (
    *(1, 2, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600),
    *(86400, 2 * 86400, 7 * 86400, 14 * 86400, 30 * 86400, 90 * 86400, 365 * 86400),
)
_FORMS = ((86400, "%Y-%m-%d"), (3600, "%m-%d %H:%M"), (60, "%H:%M"), (0, "%H:%M:%S"))
_ROUND = (1, 2, 5, 10)
_GREATEST = 1e300
_SAME = 1e-12
"""Values with a smaller relative difference are drawn as equal."""

_MARGIN = 1e-9
"""Relative margin around equal values: 1.0 is lost in those above 2^53."""

_WHOLE = 1000.0
"""Larger numbers are shown without decimals."""

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


class TickMark(msgspec.Struct, frozen=True):
    """A tick mark: its position and its text."""

    place: float
    text: str


class Scale(msgspec.Struct, frozen=True):
    """A linear map from values ``low`` … ``high`` to positions ``start`` … ``end``."""

    low: float
    high: float
    start: float
    end: float
    is_time: bool = False

    def put(self, value: float) -> float:
        """Return the position of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + (self.end - self.start) * share, 2)

    def list_marks(self) -> list[TickMark]:
        """Return round values with their positions, lowest first."""
        span = self.high - self.low
        if self.is_time:
            longest = _SECOND_STEPS[-1]
            fitting = (one for one in _SECOND_STEPS if span / one <= MAX_MARKS - 1)
            step: float = next(fitting, math.ceil(span / longest / MAX_MARKS) * longest)
        else:
            least = span / (MAX_MARKS - 1)
            power = 10.0 ** math.floor(math.log10(least))
            step = next(part * power for part in _ROUND if part * power >= least * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        values = [number * step for number in range(first, last + 1)]
        texts = [
            write_moment(value, step) if self.is_time else _write_brief(value) for value in values
        ]
        return [TickMark(self.put(value), text) for value, text in zip(values, texts, strict=True)]


def fit_scale(
    values: Sequence[float], start: float, end: float, *, zero: bool, is_time: bool = False
) -> Scale:
    """Return a scale for ``values``; ``zero`` includes zero, so that lengths are comparable."""
    low, high = min(values), max(values)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= _SAME * max(abs(low), abs(high), _SAME):
        margin = max(1.0, _MARGIN * abs(high))
        low, high = (low, low + 1.0) if zero else (low - margin, high + margin)
    return Scale(low, high, start, end, is_time)


def write_number(number: float) -> str:
    """Format a number with the precision that a chart needs."""
    return f"{number:,.0f}" if number == int(number) or abs(number) >= _WHOLE else f"{number:,.4g}"


def _write_brief(number: float) -> str:
    for size, unit in _UNITS:
        if abs(number) >= size:
            return f"{number / size:.4g} {unit}"
    return write_number(number)


def write_moment(seconds: float, step: float) -> str:
    """Format a time (UTC) as precisely as marks ``step`` seconds apart require."""
    moment = datetime.fromtimestamp(seconds, UTC)
    form = next(form for least, form in _FORMS if step >= least)
    return moment.strftime(form)


def read_place(value: object) -> float | None:
    """Return a number, or an ISO 8601 time as Unix seconds (UTC without a zone).

    Decimals come as text. None for NULL, other values and numbers too large to draw.
    """
    if value is None or isinstance(value, bool):
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
        return number if abs(number) < _GREATEST else None  # None for NaN, too
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


WIDTH, HEIGHT = 100, 300
"""Horizontal positions are in percent, so that a chart fits any page; heights are in pixels."""

EDGE, TOP, BOTTOM = 0.3, 12, 30
NAME_HEIGHT, BAR_HEIGHT, BAR_GAP = 18, 16, 6
DIGIT_WIDTH, MIN_WIDTH = 8, 320
"""Pixels of a digit, and of the narrowest chart, in which numbers must fit beside their bars."""

MAX_SERIES, MAX_BARS, MAX_DOTS = 4, 40, 60
KEPT_ENDS = 10
"""Characters kept of each end of a long name."""

BAR_SHARE = 0.8
"""Width of a group of vertical bars, as a share of the distance between groups."""

KINDS = ("auto", "bar", "line", "scatter", "none")
_NUMBERS = ("int", "uint", "double", "float", "decimal")
_TIMES = ("date", "timestamp")
_PLACES = ("now", "lt", "seqno", "utime", "workchain", "shard", "index")
"""Suffixes of columns with positions in the chain; they are drawn only if chosen."""


class ChartUnfit(ValueError):
    """The result cannot be drawn as requested; the text is the reason."""


DEFAULT = Chart()


class Dot(msgspec.Struct, frozen=True):
    """A point of a line or scatter chart, or the corner of a bar; ``x`` is in percent."""

    x: float
    y: float
    shade: int
    text: str


class Bar(Dot, frozen=True):
    """A bar with its label ``text``; ``x`` and ``width`` are in percent."""

    width: float
    height: float


class Drawing(msgspec.Struct, frozen=True):
    """A drawn chart for the template; ``names`` label the groups of a categorical axis.

    ``key`` is the legend, if there are several series. ``names_left_out`` and ``series_left_out``
    did not fit.
    """

    kind: str
    x: str
    y: str
    height: int = HEIGHT
    boxes: tuple[Bar, ...] = ()
    dots: tuple[Dot, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()
    names: tuple[TickMark, ...] = ()
    x_marks: tuple[TickMark, ...] = ()
    y_marks: tuple[TickMark, ...] = ()
    zero: float | None = None
    key: tuple[tuple[int, str], ...] = ()
    names_left_out: int = 0
    series_left_out: tuple[str, ...] = ()


Series = dict[str, list[tuple[Any, float]]]
"""By the name of a column, or of a group of its rows: values of the axis, as in the result, with
numbers."""


def is_number(kind: str) -> bool:
    """Return whether values of the Arrow type ``kind`` are numbers."""
    return kind.startswith(_NUMBERS)


def draw_chart(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], choice: Chart = DEFAULT
) -> Drawing:
    """Draw a result of ``columns`` (names and Arrow types), with values as in JSON.

    Empty parts of the choice are chosen: names become bars, numbers and times lines. Raises
    ChartUnfit if the result cannot be drawn as requested.
    """
    if len(rows) < 2:  # noqa: PLR2004 - one point makes no chart
        raise ChartUnfit("a chart needs two rows")
    kinds = dict(reversed(columns))
    for name in (choice.x, choice.by, *choice.y):
        if name and name not in kinds:
            raise ChartUnfit(f"the result has no column {name}")
    times = [name for name, kind in columns if kind.startswith(_TIMES)]
    others = [name for name, kind in columns if not is_number(kind)]
    axis = choice.x or [*times, *others, columns[0][0]][0]
    drawn = choice.y or tuple(
        name
        for name, kind in columns
        if is_number(kind)
        and name not in {axis, choice.by}
        and name.rpartition("_")[2] not in _PLACES
    )
    if not drawn or not all(is_number(kinds[name]) for name in drawn):
        raise ChartUnfit("a chart needs a column of numbers in addition to its axis")
    series = _list_series([name for name, _ in columns], rows, axis, drawn, choice.by)
    if not series:
        raise ChartUnfit(f"{drawn[0]} has no values")
    shown = dict(islice(series.items(), MAX_SERIES))
    y = drawn[0] if choice.by else ", ".join(shown)
    chart = _draw_series(choice.kind, axis, kinds[axis], y, shown)
    key = tuple(enumerate(shown, 1)) if len(shown) > 1 else ()
    left_out = tuple(series)[MAX_SERIES:]
    return msgspec.structs.replace(chart, key=key, series_left_out=left_out)


def _draw_series(kind: str, axis: str, axis_type: str, y: str, series: Series) -> Drawing:
    is_time = axis_type.startswith(_TIMES)
    if is_time or is_number(axis_type):
        return _draw_measured("line" if kind == "auto" else kind, axis, y, series, is_time=is_time)
    if kind not in {"auto", "bar"}:
        raise ChartUnfit(f"{axis} has neither numbers nor times: only bars can show it")
    return _draw_named(axis, y, series)


def _list_series(
    names: list[str], rows: Sequence[Sequence[Any]], axis: str, drawn: Sequence[str], by: str | None
) -> Series:
    """Return a series per column, or with ``by`` per value of it; without those that are empty."""
    at = names.index(axis)
    found: Series = {}
    for name in drawn[:1] if by else drawn:
        value_at = names.index(name)
        for row in rows:
            points = found.setdefault(_cut(row[names.index(by)]) if by else name, [])
            value = read_place(row[value_at])
            if value is not None:
                points.append((row[at], value))
    return {name: points for name, points in found.items() if points}


def _draw_named(axis: str, y: str, series: Series) -> Drawing:
    """Return horizontal bars, grouped under each name."""
    names = list(dict.fromkeys(_cut(name) for points in series.values() for name, _ in points))
    shown = names[: max(1, MAX_BARS // len(series))]
    values = [value for points in series.values() for name, value in points if _cut(name) in shown]
    longest = max(len(write_number(value)) for value in values)
    beside = min(0.75, DIGIT_WIDTH * (longest + 1) / MIN_WIDTH)
    scale = fit_scale(values, 0, WIDTH * (1 - beside), zero=True)
    group = NAME_HEIGHT + BAR_HEIGHT * len(series) + BAR_GAP
    boxes = []
    for shade, points in enumerate(series.values(), 1):
        known = {_cut(name): value for name, value in reversed(points)}
        for at, name in enumerate(shown):
            if name in known:
                start, end = sorted((scale.put(0.0), scale.put(known[name])))
                top = at * group + NAME_HEIGHT + (shade - 1) * BAR_HEIGHT
                text, width = write_number(known[name]), round(end - start, 2)
                boxes.append(Bar(start, top, shade, text, width, BAR_HEIGHT - 2))
    return Drawing(
        "named",
        axis,
        y,
        height=len(shown) * group,
        boxes=tuple(boxes),
        names=tuple(TickMark(at * group, name) for at, name in enumerate(shown)),
        zero=scale.put(0.0),
        names_left_out=len(names) - len(shown),
    )


def _draw_measured(kind: str, axis: str, y: str, series: Series, *, is_time: bool) -> Drawing:
    """Return vertical bars, lines or points over an axis of numbers or times."""
    placed = [_place_points(points) for points in series.values()]
    places = [place for points in placed for place, _, _ in points]
    if not places or min(places) == max(places):
        raise ChartUnfit(f"{axis} has no two values")
    values = [value for points in placed for _, value, _ in points]
    known = sorted(set(places))
    # A group of bars takes most of the smallest gap between two positions.
    gap = min(after - before for before, after in pairwise(known))
    share = WIDTH / ((known[-1] - known[0]) / gap + 1) * BAR_SHARE
    width = max(0.2, share) if kind == "bar" else 0.0
    start, end = EDGE + width / 2, WIDTH - EDGE - width / 2
    across = fit_scale(places, start, end, zero=False, is_time=is_time)
    up = fit_scale(values, HEIGHT - BOTTOM, TOP, zero=kind != "scatter")
    every = [
        [Dot(across.put(x), up.put(value), shade, text) for x, value, text in points]
        for shade, points in enumerate(placed, 1)
    ]
    dotted = kind == "scatter" or (kind == "line" and len(places) <= MAX_DOTS)
    joined = [
        (dots[0].shade, "M" + "L".join(f"{dot.x} {dot.y}" for dot in dots))
        for dots in every
        if dots and kind == "line"
    ]
    return Drawing(
        kind,
        axis,
        y,
        boxes=tuple(_raise_bars(every, up.put(0.0), width)) if kind == "bar" else (),
        dots=tuple(dot for dots in every for dot in dots) if dotted else (),
        lines=tuple(joined),
        x_marks=tuple(across.list_marks()),
        y_marks=tuple(up.list_marks()),
        zero=up.put(0.0) if up.low <= 0 <= up.high else None,
    )


def _place_points(points: Iterable[tuple[Any, float]]) -> list[tuple[float, float, str]]:
    """Return points sorted by position, with their labels; points without one are left out."""
    placed = [
        (place, value, f"{name}: {write_number(value)}")
        for name, value in points
        if (place := read_place(name)) is not None
    ]
    return sorted(placed)


def _raise_bars(every: list[list[Dot]], ground: float, width: float) -> Iterator[Bar]:
    one = width / len(every)
    for at, dots in enumerate(every):
        for dot in dots:
            top, bottom = sorted((dot.y, ground))
            left, height = round(dot.x - width / 2 + at * one, 2), round(bottom - top, 2)
            yield Bar(left, top, dot.shade, dot.text, round(one, 2), height)


def _cut(value: Any) -> str:  # noqa: ANN401 - any JSON
    return "NULL" if value is None else shorten(str(value), KEPT_ENDS)

"""Maps numbers and times to positions on chart axes, with round tick marks."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class Mark(msgspec.Struct, frozen=True):
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

    def list_marks(self) -> list[Mark]:
        """Return round values with their positions, lowest first."""
        step = _choose_seconds(self.high - self.low) if self.is_time else _choose_step(self)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        values = [number * step for number in range(first, last + 1)]
        texts = [
            write_moment(value, step) if self.is_time else _write_brief(value) for value in values
        ]
        return [Mark(self.put(value), text) for value, text in zip(values, texts, strict=True)]


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


def _choose_step(scale: Scale) -> float:
    least = (scale.high - scale.low) / (MAX_MARKS - 1)
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(part * power for part in _ROUND if part * power >= least * (1 - 1e-9))


def _choose_seconds(span: float) -> float:
    fitting = (step for step in _SECOND_STEPS if span / step <= MAX_MARKS - 1)
    return next(fitting, math.ceil(span / _SECOND_STEPS[-1] / MAX_MARKS) * _SECOND_STEPS[-1])


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

"""Predicates on columns."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Extent = tuple[Any, Any]
"""The least and the greatest value of a column."""


class AnyOf:
    """A set of at least one value, any of which matches."""

    def __init__(self, values: Iterable[Any]) -> None:
        """Take the values, in any order."""
        self.members = frozenset(values)
        self.values = sorted(self.members)


Bounds = Extent | AnyOf
"""The least and the greatest matching value, or a set of values."""


def bracket(bound: Bounds) -> Extent:
    """Return the least and the greatest matching value."""
    return (bound.values[0], bound.values[-1]) if isinstance(bound, AnyOf) else bound


def may_hold(extent: Extent | None, bound: Bounds) -> bool:
    """Whether a column with this extent, or None if unknown, may have a matching value."""
    if extent is None:
        return True
    first, last = extent
    if isinstance(bound, AnyOf):
        at = bisect_left(bound.values, first)
        return at < len(bound.values) and bool(bound.values[at] <= last)
    return bool(first <= bound[1] and last >= bound[0])

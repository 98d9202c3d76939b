"""Predicates on columns."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Extent = tuple[Any, Any]
"""The least and the greatest value of a column."""


class AnyOf:
    """Values of which any fits: at least one."""

    def __init__(self, values: Iterable[Any]) -> None:
        """Take the values, in any order."""
        self.members = frozenset(values)
        self.values = sorted(self.members)


Bounds = Extent | AnyOf
"""The least and the greatest value that fits, or some values."""


def bracket(bound: Bounds) -> Extent:
    """Return the least and the greatest value that fits."""
    return (bound.values[0], bound.values[-1]) if isinstance(bound, AnyOf) else bound


def may_hold(extent: Extent | None, bound: Bounds) -> bool:
    """Whether a column of this extent, or of an unknown one, may have what fits."""
    if extent is None:
        return True
    first, last = extent
    if isinstance(bound, AnyOf):
        at = bisect_left(bound.values, first)
        return at < len(bound.values) and bool(bound.values[at] <= last)
    return bool(first <= bound[1] and last >= bound[0])

"""What is wanted of a column: values between two, both included, or any of some."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Extent = tuple[Any, Any]
"""The least and the greatest value of a column."""


class AnyOf:
    """Values of which any is wanted: at least one."""

    def __init__(self, values: Iterable[Any]) -> None:
        """Take the values, in any order."""
        self.members = frozenset(values)
        self.values = sorted(self.members)


Bounds = Extent | AnyOf
"""The least and the greatest value wanted of a column, or some values."""


def bracket(wanted: Bounds) -> Extent:
    """Return the least and the greatest value that is wanted."""
    return (wanted.values[0], wanted.values[-1]) if isinstance(wanted, AnyOf) else wanted


def may_hold(extent: Extent | None, wanted: Bounds) -> bool:
    """Tell whether a column of this extent, or of an unknown one, may have what is wanted."""
    if extent is None:
        return True
    first, last = extent
    if isinstance(wanted, AnyOf):
        at = bisect_left(wanted.values, first)
        return at < len(wanted.values) and bool(wanted.values[at] <= last)
    return bool(first <= wanted[1] and last >= wanted[0])

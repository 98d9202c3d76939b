"""Predicates on columns, and row groups of few rows that are tested as lists of Python's values.

A lake that follows a node has a file a second or more, each of a few rows. To compare a column, to
take rows and to make values of a column costs microseconds in Arrow, however few they are, and
there are thirty columns.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa


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


FEW_ROWS = 16
"""Groups of more rows would take more memory than in Arrow, whose columns have a fixed cost."""

_VALUE_BYTES = 64
"""What a value takes as an object, about."""


class FewRows:
    """The rows of one group, by column; they are never changed."""

    def __init__(self, group: pa.Table) -> None:
        """Take the values of a row group."""
        self.num_rows: int = group.num_rows
        self.size_bytes: int = (
            group.nbytes + (1 + group.num_rows) * group.num_columns * _VALUE_BYTES
        )
        self._columns: dict[str, list[Any]] = group.to_pydict()

    def find(self, bounds: Mapping[str, Bounds]) -> Sequence[int]:
        """Return the numbers of the rows within bounds; NULL is within none.

        Raises:
            KeyError: the group lacks a column.
        """
        found: Sequence[int] = range(self.num_rows)
        for name, bound in bounds.items():
            column = self._columns[name]
            if isinstance(bound, AnyOf):
                found = [at for at in found if column[at] in bound.members]
                continue
            first, last = bound
            if first != last:
                values = ((at, column[at]) for at in found)
                found = [at for at, value in values if value is not None and first <= value <= last]
            elif first in column:
                found = [at for at in found if column[at] == first]
            else:
                return ()
        return found

    def list_rows(self, numbers: Sequence[int], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return rows as a query gives them; None stands for what an older file does not have."""
        held = self._columns
        return [
            {name: held[name][at] if name in held else None for name in columns} for at in numbers
        ]

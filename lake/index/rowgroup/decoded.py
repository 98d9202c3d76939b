"""Decoded row groups: finds rows and reads values without the call overhead of Arrow.

In Arrow, comparing a column, taking rows and converting a column each cost microseconds, however
few rows there are, and there are thirty columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.rowgroup.predicate import AnyOf
from tonlake.lake.index.segment.native import NATIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from tonlake.lake.index.rowgroup.predicate import Bounds

_COLUMN_BYTES = 600
"""Approximate overhead of a column, in addition to its values."""

_FEW_HASHES = 64
"""So few hashes differ from most others of a column in the first byte."""

Row = dict[str, Any]


class Decoded:
    """The rows of one group, which never change."""

    def __init__(self, rows: pa.Table) -> None:
        """Take the rows of a group, at least one."""
        batch = rows.combine_chunks().to_batches()[0]
        self.num_rows: int = batch.num_rows
        self.size_bytes: int = batch.nbytes + _COLUMN_BYTES * batch.num_columns
        self._names = tuple(batch.schema.names)
        self._group = NATIVE.Group(batch)

    def find(self, bounds: Mapping[str, Bounds]) -> list[int]:
        """Return the numbers of the rows within bounds; NULL is outside all bounds.

        A hash, an account or a few hashes leave few rows, and are compared first. ``AnyOf`` of
        other values costs most, and is checked last, on the remaining rows.

        Raises:
            KeyError: the group lacks a column.
        """
        numbers: list[int] | None = None
        for name in sorted(bounds, key=lambda name: _rank_cost(bounds[name])):
            place = _find_place(self._names, name)
            if place is None:
                raise KeyError(name)
            if numbers is None or numbers:
                numbers = self._group.find(place, *_list_values(bounds[name]), numbers)
        return list(range(self.num_rows)) if numbers is None else numbers

    def values(self, numbers: list[int], name: str) -> list[Any]:
        """Return the values of a column in some rows; None if an older file lacks the column."""
        place = _find_place(self._names, name)
        if place is None:
            return [None] * len(numbers)
        found: list[Any] = self._group.values(place, numbers)
        return found

    def rows(self, numbers: list[int], columns: Sequence[str]) -> list[Row]:
        """Return rows as dicts, like a query; None for columns that an older file lacks."""
        names = tuple(columns)
        found: list[Row] = self._group.rows(names, _find_places(self._names, names), numbers)
        return found


@lru_cache(1024)
def _find_place(names: tuple[str, ...], name: str) -> int | None:
    return names.index(name) if name in names else None


@lru_cache(1024)
def _find_places(names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int | None, ...]:
    return tuple(_find_place(names, name) for name in wanted)


def _rank_cost(bound: Bounds) -> int:
    """Return the rank in which a bound is compared, the cheapest first."""
    if isinstance(bound, AnyOf):
        return 1 if len(bound.values) <= _FEW_HASHES and _is_hash(bound.values[0]) else 3
    return 0 if _is_hash(bound[0]) else 2


def _is_hash(value: object) -> bool:
    return isinstance(value, bytes)


def _list_values(bound: Bounds) -> tuple[list[Any], bool]:
    """Return the values of a bound in order, and whether everything between them fits."""
    if isinstance(bound, AnyOf):
        return bound.values, False
    return ([bound[0]], False) if bound[0] == bound[1] else (list(bound), True)

"""Rows of decoded row groups within bounds; their columns are read for those of a page alone."""

from __future__ import annotations

from itertools import chain, compress
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.index.rowgroup.predicate import AnyOf, FewRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tonlake.lake.index.rowgroup.predicate import Bounds

FEW_VALUES = 10
"""Up to this many rows of a group cost less value by value than taken from all columns at once."""

Row = dict[str, Any]
Decoded: TypeAlias = "pa.RecordBatch | FewRows"
Numbers: TypeAlias = "Sequence[int] | pa.Array"
"""Numbers of rows in their group."""


class Selection:
    """Rows of some groups, in no order."""

    def __init__(self, parts: Sequence[tuple[Decoded, Numbers]] = ()) -> None:
        """Take the groups, each with the numbers of its rows."""
        self._parts = [part for part in parts if len(part[1])]

    def __len__(self) -> int:
        """Return how many rows there are."""
        return sum(len(numbers) for _, numbers in self._parts)

    def values(self, name: str) -> list[Any]:
        """Return what a column has, row by row."""
        return [value for part in self._parts for value in _list_values(*part, name)]

    def rows(self, columns: Sequence[str]) -> list[Row]:
        """Return rows as a query gives them."""
        return [row for part in self._parts for row in _list_rows(*part, columns)]

    def pick(self, places: Iterable[int], columns: Sequence[str]) -> list[Row]:
        """Return some rows by their places here, in the order of these."""
        wanted = list(places)
        in_order = sorted(wanted)  # as all rows of a group are listed
        found: dict[int, Row] = {}
        first = 0
        for group, numbers in self._parts:
            own = [at for at in in_order if first <= at < first + len(numbers)]
            listed = _list_numbers(numbers) if own else ()
            chosen = [listed[at - first] for at in own]
            found |= zip(own, _list_rows(group, chosen, columns), strict=True)
            first += len(numbers)
        return [found[at] for at in wanted]

    def nearest(self, name: str, most: int, *, descending: bool) -> Selection:
        """Return the first ``most`` rows by a column without NULL, and all others like the last."""
        if most <= 0 or len(self) <= most:
            return self if most > 0 else Selection()
        columns = [_list_values(*part, name) for part in self._parts]
        edge = sorted(chain.from_iterable(columns), reverse=descending)[most - 1]
        return self._keep(columns, edge.__le__ if descending else edge.__ge__)

    def where(self, name: str, fits: Callable[[Any], bool]) -> Selection:
        """Return the rows of which a column has what fits."""
        return self._keep([_list_values(*part, name) for part in self._parts], fits)

    def _keep(self, columns: Iterable[list[Any]], fits: Callable[[Any], bool]) -> Selection:
        """Return the rows of which what fits stands in a column, given part by part."""
        return Selection(
            [
                (group, list(compress(_list_numbers(numbers), map(fits, column))))
                for (group, numbers), column in zip(self._parts, columns, strict=True)
            ]
        )


def find_rows(group: Decoded, bounds: Mapping[str, Bounds]) -> Numbers:
    """Return the numbers of the rows of a group within bounds.

    A hash or an account leaves few rows, and comes first. Values of which any fits are looked for
    last, among the rows that are left: that costs most.
    """
    if isinstance(group, FewRows):
        return group.find(bounds)
    numbers: pa.Array | None = None
    for name in sorted(bounds, key=lambda name: _rank_cost(bounds[name])):
        column = group[name]
        if numbers is None:
            numbers = pc.indices_nonzero(_fits(column, bounds[name]))
        elif len(numbers):
            numbers = numbers.filter(_fits(column.take(numbers), bounds[name]))
    return range(group.num_rows) if numbers is None else numbers


def _rank_cost(bound: Bounds) -> int:
    """Return which bounds are compared before which others."""
    if isinstance(bound, AnyOf):
        return 2
    return 0 if isinstance(bound[0], bytes) else 1


def _fits(column: pa.Array, bound: Bounds) -> pa.Array:
    """Return for each value whether it is within a bound."""
    if isinstance(bound, AnyOf):
        return pc.is_in(column, pa.array(bound.values, column.type))
    low, high = (pa.scalar(value, column.type) for value in bound)
    if bound[0] == bound[1]:
        return pc.equal(column, low)
    return pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))


def _list_numbers(numbers: Numbers) -> Sequence[int]:
    """Return numbers as those of Python, all at once: one by one they are objects of Arrow."""
    if not isinstance(numbers, pa.Array):
        return numbers
    listed: list[int] = numbers.to_pylist()
    return listed


def _list_values(group: Decoded, numbers: Numbers, name: str) -> list[Any]:
    if isinstance(group, FewRows):
        return [row[name] for row in group.list_rows(numbers, (name,))]
    if name not in group.schema.names:
        return [None] * len(numbers)
    column = group[name]
    if len(numbers) <= FEW_VALUES:
        return [column[at].as_py() for at in _list_numbers(numbers)]
    if len(numbers) < group.num_rows:
        column = column.take(pa.array(numbers))
    values: list[Any] = column.to_pylist()
    return values


def _list_rows(group: Decoded, numbers: Numbers, columns: Sequence[str]) -> list[Row]:
    """Return rows as a query gives them; None stands for what an older file does not have."""
    if isinstance(group, FewRows):
        return group.list_rows(numbers, columns)
    held_names = frozenset(group.schema.names)
    chosen = group.select([name for name in columns if name in held_names])
    if len(numbers) <= FEW_VALUES:
        places = _list_numbers(numbers)
        lists = [[column[at].as_py() for at in places] for column in chosen.columns]
    else:
        chosen = chosen if len(numbers) == group.num_rows else chosen.take(pa.array(numbers))
        lists = [column.to_pylist() for column in chosen.columns]
    held = dict(zip(chosen.schema.names, lists, strict=True))
    lacking = [None] * len(numbers)
    lists = [held.get(name, lacking) for name in columns]
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]

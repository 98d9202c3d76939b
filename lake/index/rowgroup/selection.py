"""Selected rows of decoded row groups; columns are read only for the rows of a page."""

from __future__ import annotations

from itertools import chain, compress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tonlake.lake.index.rowgroup.decoded import Decoded

Row = dict[str, Any]


class Selection:
    """Rows of some groups, unordered."""

    def __init__(self, parts: Sequence[tuple[Decoded, list[int]]] = ()) -> None:
        """Take the groups, each with the numbers of its rows."""
        self._parts = [part for part in parts if len(part[1])]

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(len(numbers) for _, numbers in self._parts)

    def values(self, name: str) -> list[Any]:
        """Return the values of a column, row by row."""
        return list(chain.from_iterable(self._list_values(name)))

    def rows(self, columns: Sequence[str]) -> list[Row]:
        """Return rows as dicts, like a query."""
        return [row for group, numbers in self._parts for row in group.rows(numbers, columns)]

    def pick(self, places: Iterable[int], columns: Sequence[str]) -> list[Row]:
        """Return some rows by position, in the given order."""
        wanted = list(places)
        in_order = sorted(wanted)  # rows are listed group by group
        found: dict[int, Row] = {}
        first = 0
        for group, numbers in self._parts:
            own = [at for at in in_order if first <= at < first + len(numbers)]
            chosen = [numbers[at - first] for at in own]
            found |= zip(own, group.rows(chosen, columns), strict=True)
            first += len(numbers)
        return [found[at] for at in wanted]

    def nearest(self, name: str, most: int, *, descending: bool) -> Selection:
        """Return the first ``most`` rows by a column without NULL, and all ties of the last."""
        if most <= 0 or len(self) <= most:
            return self if most > 0 else Selection()
        columns = self._list_values(name)
        edge = sorted(chain.from_iterable(columns), reverse=descending)[most - 1]
        return self._keep(columns, edge.__le__ if descending else edge.__ge__)

    def where(self, name: str, fits: Callable[[Any], bool]) -> Selection:
        """Return the rows whose value in a column satisfies ``fits``."""
        return self._keep(self._list_values(name), fits)

    def _list_values(self, name: str) -> list[list[Any]]:
        return [group.values(numbers, name) for group, numbers in self._parts]

    def _keep(self, columns: Iterable[list[Any]], fits: Callable[[Any], bool]) -> Selection:
        """Return the rows whose value satisfies ``fits``; ``columns`` has values part by part."""
        return Selection(
            [
                (group, list(compress(numbers, map(fits, column))))
                for (group, numbers), column in zip(self._parts, columns, strict=True)
            ]
        )

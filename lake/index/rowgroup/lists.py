"""A row group of few rows, as lists of Python's values: what Arrow does with one costs more.

A lake that follows a node has a file a second or more, each of a few rows. To compare a column, to
take rows and to make values of a column costs microseconds in Arrow, however few they are, and
there are thirty columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.lake.index.rowgroup.predicate import AnyOf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from tonlake.lake.index.rowgroup.predicate import Bounds

FEW_ROWS = 16
"""Groups of more rows would take more memory than in Arrow, whose columns have a fixed cost."""

_VALUE_BYTES = 64
"""What a value takes as an object, about."""


class FewRows:
    """The rows of one group, by column; nobody may change a value of them."""

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
        for name, wanted in bounds.items():
            column = self._columns[name]
            if isinstance(wanted, AnyOf):
                found = [at for at in found if column[at] in wanted.members]
                continue
            first, last = wanted
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

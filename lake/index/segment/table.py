"""The rows of one table of an open segment."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.segment.declared import ABSENT, make_row_type
from tonlake.lake.index.segment.postings import Postings, cut_hash, cut_number
from tonlake.lake.index.segment.rows import places_of, read_amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.lake.index.segment.declared import Indexed
    from tonlake.lake.index.segment.file import SegmentFile
    from tonlake.lake.index.segment.rows import SegmentRows


@cache
def _row_type(name: str, columns: tuple[str, ...]) -> Any:  # noqa: ANN401 - a type
    return make_row_type(name, columns)


class SegmentTable:
    """Finds rows by keys, in orders, and reads their copies."""

    def __init__(self, file: SegmentFile, table: Indexed, rows: SegmentRows) -> None:
        """Take the arrays of an open segment.

        Raises:
            LakeCorrupt: an array is missing.
        """
        self.name, self._declared, self._rows = table.name, table, rows
        self._ends, self._start = file.rows(f"{table.name}.rows")
        self.numbers = {name: file.numbers(f"{table.name}.{name}") for name in table.numbers}
        lengths = [len(self._ends) - 1, *map(len, self.numbers.values())]
        self.count = max(lengths)
        """The number of rows."""
        self.orders = {
            order[0]: file.numbers(f"{table.name}.by_{order[0]}") for order in table.orders
        }
        self._postings = {
            name: Postings(file, f"{table.name}.{name}") for name in (*table.hashes, *table.keys)
        }
        copied = table.copied
        self._hash_places = places_of(table.name, copied, "hash")
        self._list_places = places_of(table.name, copied, "hashes")
        self._amount_places = places_of(table.name, copied, "amount")
        self._absent = [(numbers, ABSENT[numbers.format]) for numbers in self.numbers.values()]
        self._type = _row_type(table.name, table.columns)

    def find(self, column: str, value: bytes | int) -> Sequence[int]:
        """Return the rows that may have a value in a column, in order.

        Those of other values with the same key are included.
        """
        key = cut_number(value) if isinstance(value, int) else cut_hash(value)
        return self._postings[column].find(key)

    def has(self, column: str, value: bytes) -> bool:
        """Whether rows may have a value in a column."""
        return self._postings[column].has(cut_hash(value))

    def read_values(self, rows: Sequence[int], *, numbered: bool = False) -> list[list[Any]]:
        """Return the columns of rows, in the order of the declaration.

        ``numbered``: hashes are numbers of the segment's 32-byte values.
        """
        found = self._rows.read(self._ends, self._start, rows)
        if not numbered:
            self._rows.fill(found, self._hash_places)
        for at in self._list_places:
            for values in found:
                if values[at] is not None:
                    values[at] = list(map(self._rows.hash_of, values[at]))
        read_amounts(found, self._amount_places)
        for numbers, absent in self._absent:
            for row, values in zip(rows, found, strict=True):
                number = numbers[row]
                values.append(None if number == absent else number)
        return found

    def read_parts(self, rows: Sequence[int], at: int) -> list[Any]:
        """Return what copies of rows have at a place, as it was encoded."""
        return [values[at] for values in self._rows.read(self._ends, self._start, rows)]

    def read(self, rows: Iterable[int]) -> list[Any]:
        """Return rows, in the same order."""
        return list(map(self._type._make, self.read_values(list(rows))))

    def read_dicts(self, rows: Iterable[int]) -> list[dict[str, Any]]:
        """Return rows as dicts, in the same order."""
        names = self._declared.columns
        found = self.read_values(list(rows))
        return [dict(zip(names, values, strict=True)) for values in found]

"""Reads footers of data files: sizes of row groups, and value ranges of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from tonlake.lake.index.rowgroup.predicate import may_hold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.lake.index.rowgroup.predicate import Bounds, Extent

Size = tuple[int, int]
"""Rows of a row group, and their bytes."""


class Footer:
    """The footer of a file, as far as it was read: sizes and extents of its row groups.

    A complete footer takes 60 to 80 kB of memory, and a lake that follows a node has thousands of
    files; so the file is read again when another column is needed.
    """

    def __init__(self, path: str) -> None:
        """Remember the path; nothing is read yet."""
        self._path = path
        self._extents: dict[str, list[Extent | None]] = {}
        self.sizes: list[Size] = []

    def knows(self, names: Iterable[str]) -> bool:
        """Whether ``find`` can answer bounds of these columns without reading the file."""
        return bool(self.sizes) and all(name in self._extents for name in names)

    def find(self, bounds: Mapping[str, Bounds]) -> list[int]:
        """Return the numbers of the row groups that may have rows within bounds.

        Raises:
            KeyError: the file lacks a column.
        """
        self._read([name for name in bounds if name not in self._extents])
        numbers = list(range(len(self.sizes)))
        for name, bound in bounds.items():
            extents = self._extents[name]
            numbers = [number for number in numbers if may_hold(extents[number], bound)]
        return numbers

    def _read(self, names: Sequence[str]) -> None:
        """Read sizes, and the extents of columns."""
        if self.sizes and not names:
            return
        footer = pq.read_metadata(self._path)
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        # Avoid ``footer.schema``, whose reference cycle would keep both in memory for minutes.
        numbers = range(footer.num_columns if groups else 0)
        places = {groups[0].column(at).path_in_schema: at for at in numbers}
        for name in names:
            columns = (group.column(places[name]).statistics for group in groups)
            self._extents[name] = [
                (found.min, found.max) if found is not None and found.has_min_max else None
                for found in columns
            ]
        self.sizes = [(group.num_rows, group.total_byte_size) for group in groups]

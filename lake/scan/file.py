"""Reads data files for a scan: row groups of some blocks, and their rows that pass filters."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tonlake.lake.log.place import read_place
from tonlake.lake.scan.plan import join_masks, name_height
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile
    from tonlake.lake.scan.plan import Selections
    from tonlake.lake.schema import Table

    OpenFile = Callable[[str], AbstractContextManager[Any]]
    """Opens a file for Arrow to read, by its path in the lake."""

KEPT_FILES = 8
"""Files kept open: one for each table of a join, and their successors."""


class Group(NamedTuple):
    """A row group: its number, the masterchain blocks it may have rows of, and its row count."""

    number: int
    first: int
    last: int
    rows: int


class ScannedFile:
    """An open data file and its row groups."""

    def __init__(self, source: Any, file: DataFile) -> None:  # noqa: ANN401 - what Arrow reads
        """Read the footer."""
        self._file = pq.ParquetFile(source, pre_buffer=False)
        self._held = frozenset(self._file.schema_arrow.names)
        self.table: Table = TABLES[file.table]
        self.groups = self._list_groups(file)

    def _list_groups(self, file: DataFile) -> list[Group]:
        place, footer = read_place(file.path), self._file.metadata
        height = name_height(self.table)
        at = footer.schema.names.index(height) if height in self._held else -1
        groups = []
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            known = group.column(at).statistics if at >= 0 else None
            # A file that begins with block 1 also has rows of block 0, the zero state.
            first, last = place.first - (place.first == 1), place.last
            if known is not None and known.has_min_max:
                first, last = known.min, known.max
            groups.append(Group(number, first, last, group.num_rows))
        return groups

    def read(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Return columns of a row group; columns newer than the file are NULL."""
        present = [name for name in columns if name in self._held]
        rows = self._file.read_row_group(number, columns=present, use_threads=False)
        if len(present) == len(columns):
            return rows.select(columns)
        fields = [self.table.arrow.field(name) for name in columns]
        arrays = [
            rows[field.name] if field.name in self._held else pa.nulls(rows.num_rows, field.type)
            for field in fields
        ]
        return pa.table(arrays, schema=pa.schema(fields))

    def read_chosen(
        self,
        group: Group,
        span: Range,
        columns: Sequence[str],
        selections: Selections,
    ) -> pa.Table:
        """Return the rows of some blocks that pass all filters of one of ``selections``.

        Columns that no filter needs are decoded only if a row passes.
        """
        height = name_height(self.table) or ""
        masks: list[pa.ChunkedArray] = []
        is_partial = group.first < span[0] or group.last > span[1]
        needed = {name for filters in selections for one in filters for name in one.needs}
        first = sorted(needed | ({height} if is_partial else set()))
        rows = self.read(group.number, first) if first else None
        if rows is not None and is_partial:
            at = rows[height]
            masks += [pc.greater_equal(at, span[0]), pc.less_equal(at, span[1])]
        if rows is not None and needed:
            masks.append(mask_selections(rows, selections))
        if not masks or rows is None:
            return self.read(group.number, columns)
        mask = join_masks(masks, every=True)
        if not pc.any(mask).as_py():
            return pa.schema([self.table.arrow.field(name) for name in columns]).empty_table()
        rest = [name for name in columns if name not in first]
        if rest:
            others = self.read(group.number, rest)
            for name in rest:
                rows = rows.append_column(others.schema.field(name), others[name])
        return rows.select(columns).filter(mask)


def mask_selections(rows: pa.Table, selections: Selections) -> pa.ChunkedArray:
    """Return the mask of rows that pass all filters of one of the selections."""
    masks = [join_masks([one.mask(rows) for one in filters], every=True) for filters in selections]
    return join_masks(masks, every=False)


class OpenFiles:
    """The files that a scan reads, the most recent ones kept open; for one thread at a time."""

    def __init__(self, open_file: OpenFile) -> None:
        """Take the function that opens a file; nothing is opened yet."""
        self._open_file = open_file
        self._kept: OrderedDict[str, tuple[ScannedFile, ExitStack]] = OrderedDict()

    def open(self, file: DataFile) -> ScannedFile:
        """Return a file, opening it unless it is still open.

        Raises:
            OSError: it was deleted, or cannot be read.
        """
        if file.path not in self._kept:
            with ExitStack() as stack:
                opened = ScannedFile(stack.enter_context(self._open_file(file.path)), file)
                self._kept[file.path] = opened, stack.pop_all()
        self._kept.move_to_end(file.path)
        while len(self._kept) > KEPT_FILES:
            _path, (_opened, stack) = self._kept.popitem(last=False)
            stack.close()
        return self._kept[file.path][0]

    def close(self) -> None:
        """Close all files."""
        while self._kept:
            _path, (_opened, stack) = self._kept.popitem()
            stack.close()

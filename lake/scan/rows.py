"""Reads rows of a snapshot in chain order: by masterchain block, then in the table's order."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.place import is_open, read_place
from tonlake.lake.scan.file import mask_selections
from tonlake.lake.scan.join import append_joined
from tonlake.lake.scan.plan import list_joins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.log.state import DataFile
    from tonlake.lake.scan.file import Group, OpenFiles
    from tonlake.lake.scan.plan import Join, Plan, Selections
    from tonlake.lake.schema import Table

    Select = Callable[
        [Table, Sequence[str], Selections, Range, int], Iterable[tuple[pa.Table, int]] | None
    ]
    """Returns the selected rows of some blocks, and possibly others, in chain order.

    Each part has the block up to which it is complete. None: too many transactions match, and the
    files must be read.
    """

HELD_ROWS = 262_144
"""Approximate number of rows sorted at once if a file is not in the order of blocks."""

ROWS_PER_RECORD = 256
"""Approximate number of rows read from files in the time of one transaction from the index."""


class Part(NamedTuple):
    """Rows, complete up to a masterchain block."""

    rows: pa.Table
    height: int


class SnapshotFiles:
    """The files of a snapshot by table, in the order of their blocks."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Take an open snapshot."""
        self.snapshot = snapshot
        self._files: dict[str, list[DataFile]] = {}

    def list(self, table: Table, span: Range) -> list[DataFile]:
        """Return the files of a table that may have final rows of some blocks.

        Raises:
            LakeCorrupt: a file of the table is damaged, or the lake is a copy without it.
        """
        if table.name in self.snapshot.damaged:
            raise self.snapshot.damaged[table.name]
        self.snapshot.watch.check(table.name)
        if table.name not in self._files:
            final = [
                file
                for file in self.snapshot.files[table.name]
                if not is_open(file.path) and not read_place(file.path).is_baseline
            ]
            self._files[table.name] = sorted(final, key=_read_first)
        files = self._files[table.name]
        found = []
        for at in range(bisect_left(files, span[0], key=_read_last), len(files)):
            if _read_first(files[at]) > max(1, span[1]):
                break
            found.append(files[at])
        return found


def _read_first(file: DataFile) -> int:
    return read_place(file.path).first


def _read_last(file: DataFile) -> int:
    return read_place(file.path).last


class RowReader:
    """Reads the selected rows of one snapshot; for one thread at a time."""

    def __init__(self, source: SnapshotFiles, plan: Plan, files: OpenFiles, select: Select) -> None:
        """Take the files of the snapshot, the plan, a cache of open files, and an index lookup.

        ``select`` may return the rows without reading files.
        """
        self._source, self._plan, self._files, self._select = source, plan, files, select
        needed = plan.list_needed()
        self._columns = [name for name in plan.table.names if name in needed]
        self._joined = plan.list_joined()
        self._joins = list_joins(plan.table)
        early = [
            tuple(one for one in filters if not _is_joined(one.needs))
            for filters in plan.selections
        ]
        # If one selection has no filter on the table's own columns, no row can be excluded early.
        self._early = early if all(early) else []
        self._is_late = any(_is_joined(one.needs) for each in plan.selections for one in each)
        self._everywhere: dict[str, pa.Table] = {}

    def read(self, span: Range) -> Iterator[Part]:
        """Yield the selected rows of masterchain blocks; the last part's height is the last block.

        Raises:
            LakeCorrupt: a file is missing or damaged.
        """
        height = span[0] - 1
        files = self._source.list(self._plan.table, span)
        if self._early and not self._joined:
            most = sum(file.rows for file in files) // ROWS_PER_RECORD
            found = self._select(self._plan.table, self._columns, self._early, span, most)
            for rows, height in found or ():
                yield Part(self._complete(rows.filter(mask_selections(rows, self._early))), height)
            files = [] if found is not None else files
        for file in files:
            try:
                for part in self._read_file(file, span):
                    yield part
                    height = part.height
            except (OSError, pa.ArrowInvalid) as error:
                raise LakeCorrupt(file.path, str(error)) from error
        if height < span[1]:
            yield Part(self._plan.held_schema.empty_table(), span[1])

    def _read_file(self, file: DataFile, span: Range) -> Iterator[Part]:
        groups = _choose_groups(self._files.open(file).groups, span)
        if not groups:
            return
        bounds = max(span[0], groups[0].first), min(span[1], max(one.last for one in groups))
        for part in cut_span(groups, (min(bounds), bounds[1])):
            for rows, height in self._read_in_order(file, groups, part):
                yield Part(self._complete(rows), height)

    def _read_in_order(self, file: DataFile, groups: list[Group], span: Range) -> Iterator[Part]:
        """Yield rows as soon as no later row group can have rows of their blocks."""
        groups = _choose_groups(groups, span)
        borders = [group.first for group in groups[1:]]
        borders = list(accumulate(reversed([*borders, span[1] + 1]), min))[::-1]
        held: list[pa.Table] = []
        reached = span[0] - 1
        for group, border in zip(groups, borders, strict=True):
            opened = self._files.open(file)
            rows = opened.read_chosen(group, span, self._columns, self._early)
            if rows.num_rows:
                held.append(rows)
            if border - 1 > reached:
                reached = border - 1
                ready, held = split_rows(held, self._plan.height, reached)
                yield Part(ready, reached)

    def _complete(self, rows: pa.Table) -> pa.Table:
        """Append joined columns to rows of the table, and return those that pass all filters."""
        plan = self._plan
        if not rows.num_rows:
            return plan.held_schema.empty_table()
        span = pc.min_max(rows[plan.height])
        blocks = span["min"].as_py(), span["max"].as_py()
        for name, columns in self._joined.items():
            join = self._joins[name]
            others = self._read_joined(join, join.list_columns(columns), blocks)
            rows = append_joined(rows, join, columns, others)
        if self._is_late:
            rows = rows.filter(mask_selections(rows, plan.selections))
        return rows.select(plan.held_schema.names).cast(plan.held_schema)

    def _read_joined(self, join: Join, columns: Sequence[str], span: Range) -> pa.Table:
        """Return the rows of a join that may match rows of some blocks."""
        if join.everywhere and join.name in self._everywhere:
            return self._everywhere[join.name]
        span = (0, self._source.snapshot.last_mc_seqno) if join.everywhere else span
        found = [pa.schema([join.table.arrow.field(name) for name in columns]).empty_table()]
        for file in self._source.list(join.table, span):
            try:
                opened = self._files.open(file)
                groups = _choose_groups(opened.groups, span)
                found += [opened.read_chosen(group, span, columns, ()) for group in groups]
            except (OSError, pa.ArrowInvalid) as error:
                raise LakeCorrupt(file.path, str(error)) from error
        rows = pa.concat_tables(found).combine_chunks()
        if join.everywhere:
            self._everywhere[join.name] = rows
        return rows


def _is_joined(needs: Sequence[str]) -> bool:
    return any("." in name for name in needs)


def _choose_groups(groups: Sequence[Group], span: Range) -> list[Group]:
    return [group for group in groups if group.first <= span[1] and span[0] <= group.last]


def cut_span(groups: Sequence[Group], span: Range) -> Iterator[Range]:
    """Split a span into parts that hold about ``HELD_ROWS`` rows in memory.

    The usual file, whose row groups are in the order of blocks, needs no split.
    """
    blocks = span[1] - span[0] + 1
    within = sum(group.last - group.first + 1 for group in groups)
    rows = sum(group.rows for group in groups)
    count = 1 if within < 2 * blocks else min(blocks, -(-rows // HELD_ROWS))
    for number in range(count):
        first, after = (span[0] + blocks * at // count for at in (number, number + 1))
        yield first, after - 1


def split_rows(held: list[pa.Table], height: str, last: int) -> tuple[pa.Table, list[pa.Table]]:
    """Return the rows up to a block in chain order, and those after it."""
    if not held:
        return pa.table({}), []
    rows = sort_by_block(held[0] if len(held) == 1 else pa.concat_tables(held), height)
    count = pc.sum(pc.less_equal(rows[height], last)).as_py() or 0
    return rows.slice(0, count), [rows.slice(count)] if count < rows.num_rows else []


def sort_by_block(rows: pa.Table, height: str) -> pa.Table:
    """Return rows by ascending block; those of one block keep their order."""
    if rows.num_rows <= 1:
        return rows
    blocks = rows[height].combine_chunks()
    if pc.all(pc.less_equal(blocks[:-1], blocks[1:])).as_py():
        return rows
    return rows.take(pc.sort_indices(blocks))  # the sort is stable

"""Runs a scan batch by batch, across new commits and undone blocks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.errors import BlocksLacking, LakeCorrupt
from tonlake.lake.scan.cursor import Cursor, check_cursor, find_undone, make_cursor
from tonlake.lake.scan.file import OpenFiles
from tonlake.lake.scan.rows import Part, SnapshotFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.scan.file import OpenFile
    from tonlake.lake.scan.plan import Selections
    from tonlake.lake.scan.source import RowSource
    from tonlake.lake.schema import Table

BATCH_ROWS = 65_536
"""Approximate number of rows in a batch; it ends with a masterchain block."""

BATCH_BYTES = 16 << 20
"""Approximate size of a batch in memory."""

SLICE_S = 0.1
"""After this time a batch is returned with the rows found so far, if any, to show the height."""


class Batch(NamedTuple):
    """All rows of the masterchain blocks after the previous batch, up to ``cursor.height``.

    A batch with ``undone``, the first and last of the blocks removed with an abandoned fork, has no
    rows: the reader must drop the rows of these blocks, and the scan continues before them.
    ``misfits`` counts the bodies read that do not fit their signature, by its table.
    """

    rows: pa.Table
    cursor: Cursor
    undone: Range | None = None
    misfits: Mapping[str, int] = {}


class Newest(Protocol):
    """A reader of a lake's newest snapshot."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot; the same object as long as it is the newest."""

    def select(
        self, table: Table, columns: Sequence[str], chosen: Selections, span: Range, most: int
    ) -> Iterable[tuple[pa.Table, int]] | None:
        """Return rows as ``rows.Select`` does."""


class Scanner:
    """Runs a scan; for one thread at a time."""

    def __init__(
        self,
        source: RowSource,
        start: Cursor | int,
        last: int | None,
        open_newest: Callable[[], Newest],
        open_file: OpenFile,
        *,
        limit: int | None = None,
    ) -> None:
        """Start at a masterchain block or after a cursor, and end after block ``last``, if any.

        Args:
            source: The rows to return, and how they are read.
            start: The first block, or a cursor.
            last: The last block; None: the scan never ends.
            open_newest: Returns a reader of the newest snapshot of the lake.
            open_file: Opens a file by its path in the lake.
            limit: The scan ends with the block in which the row count reaches this.

        Raises:
            CursorRefused: the cursor is not of this lake.
        """
        self.source, self.last, self._left = source, last, limit
        self._open_newest, self._files = open_newest, OpenFiles(open_file)
        self._newest = open_newest()
        self._snapshot = snapshot = self._newest.snapshot
        if isinstance(start, Cursor):
            check_cursor(start, snapshot)
        self.cursor = start if isinstance(start, Cursor) else make_cursor(snapshot, start - 1)
        self._parts: Iterator[Part] | None = None

    @property
    def is_over(self) -> bool:
        """Whether all requested blocks or rows were read."""
        if self._left == 0:
            return True
        return self.last is not None and self.cursor.height >= self.last

    def close(self) -> None:
        """Close the files that are open."""
        self._files.close()

    def advance(self) -> Batch | None:
        """Return the next batch; None if the scan is over, or the lake has no more blocks yet.

        Raises:
            BlocksLacking: the next block is missing between ranges, or was pruned.
            LakeCorrupt: a file is missing or damaged.
        """
        undone = self._refresh()
        if undone is not None:
            self.cursor = make_cursor(self._snapshot, undone[0] - 1)
            return Batch(self.source.schema.empty_table(), self.cursor, undone)
        try:
            return self._read_batch()
        except LakeCorrupt:
            self._parts = None
            if self._open_newest().snapshot is self._snapshot:
                raise
            return self.advance()  # the file was merged and removed

    def _refresh(self) -> Range | None:
        """Take the newest snapshot, and return the blocks already read that it no longer has."""
        self._newest = self._open_newest()
        newest = self._newest.snapshot
        if len(newest.undoings) != len(self._snapshot.undoings):
            self._parts = None  # it may be about to read undone blocks
        self._snapshot = newest
        return find_undone(self.cursor, newest)

    def _read_batch(self) -> Batch | None:
        ends_s = time.monotonic() + SLICE_S
        found: list[pa.Table] = []
        height: int | None = None
        size = count = 0
        for part in self._list_parts():
            height = part.height
            if part.rows.num_rows:
                found.append(part.rows)
            count, size = count + part.rows.num_rows, size + part.rows.nbytes
            if count >= BATCH_ROWS or size >= BATCH_BYTES or time.monotonic() > ends_s:
                break
        else:
            self._parts = None
            if height is None:
                return None
        rows = pa.concat_tables(found) if found else self.source.held_schema.empty_table()
        if self._left is not None:
            if rows.num_rows >= self._left:
                rows, height = cut_rows(rows, self.source.height, self._left)
            self._left = max(0, self._left - rows.num_rows)
        self.cursor = make_cursor(self._snapshot, height)
        misfits = self.source.take_misfits()
        return Batch(rows.select(self.source.columns), self.cursor, misfits=misfits)

    def _list_parts(self) -> Iterator[Part]:
        """Return the next parts, as far as the lake has blocks.

        Raises:
            BlocksLacking: it has only later blocks.
        """
        if self.is_over:
            return iter(())  # parts beyond the limit may be left
        if self._parts is None:
            span = self._find_span()
            if span is None:
                return iter(())
            files = SnapshotFiles(self._snapshot)
            parts = self.source.read(files, self._files, self._newest.select, span)
            self._parts = cut_parts(parts, self.source.height)
        return self._parts

    def _find_span(self) -> Range | None:
        """Return the next range of blocks in the lake; None if it has none of them yet."""
        first, ranges = self.cursor.height + 1, self._snapshot.ranges
        if first > ranges[-1][1]:
            return None
        for start, end in ranges:
            if start <= max(1, first) <= end:  # the zero state comes with block 1
                return first, end if self.last is None else min(end, self.last)
        shown = ", ".join(f"{start}..{end}" for start, end in ranges)
        raise BlocksLacking(
            f"masterchain block {first} is not in the lake, which has {shown}: start and end"
            " the scan within one of these ranges"
        )


def cut_parts(parts: Iterator[Part], height: str) -> Iterator[Part]:
    """Cut parts after masterchain blocks, so that none is much larger than a batch."""
    for part in parts:
        rows = part.rows
        while rows.num_rows > 1 and (rows.num_rows > BATCH_ROWS or rows.nbytes > BATCH_BYTES):
            most = min(BATCH_ROWS, max(1, rows.num_rows * BATCH_BYTES // max(1, rows.nbytes)))
            first, last = cut_rows(rows, height, most)
            if first.num_rows == rows.num_rows:
                break
            yield Part(first, last)
            rows = rows.slice(first.num_rows)
        yield Part(rows, part.height)


def cut_rows(rows: pa.Table, height: str, count: int) -> tuple[pa.Table, int]:
    """Return ``count`` rows and the rest of the last row's masterchain block, and that block."""
    last: int = rows[height][count - 1].as_py()
    return rows.slice(0, pc.sum(pc.less_equal(rows[height], last)).as_py()), last

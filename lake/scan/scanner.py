"""Runs a scan batch by batch, across new commits and undone blocks, from cursor to cursor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.errors import BlocksLacking, CursorRefused, LakeCorrupt, LakeError
from tonlake.lake.log.state import read_commit
from tonlake.lake.scan.plan import HELD_HEIGHT
from tonlake.lake.scan.rows import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.scan.rows import ScanRows

_DIGITS = 16
_CURSOR = re.compile(rf"([0-9]{{1,12}})-([1-9][0-9]{{0,11}})-([0-9a-f]{{0,{_DIGITS}}})")
BATCH_ROWS = 65_536
"""Approximate number of rows in a batch; it ends with a masterchain block."""

BATCH_BYTES = 16 << 20
"""Approximate size of a batch in memory."""


class Cursor(msgspec.Struct, frozen=True):
    """All rows up to a masterchain block were returned, as they were in a commit of the lake.

    ``digest`` is a prefix of the digest of the commit's log entry, which identifies the lake.
    """

    height: int
    commit: int
    digest: str

    def __str__(self) -> str:
        """Return the text that ``parse_cursor`` reads."""
        return f"{self.height}-{self.commit}-{self.digest}"


def make_cursor(snapshot: Snapshot, height: int) -> Cursor:
    """Return the cursor after a masterchain block of a snapshot."""
    return Cursor(height, snapshot.number, snapshot.state.digest[:_DIGITS])


def parse_cursor(text: str) -> Cursor:
    """Parse a cursor as written by ``str``.

    Raises:
        CursorRefused: it is malformed.
    """
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise CursorRefused(f"{text[:80]!r} is not a cursor of a scan, such as each batch has")
    return Cursor(int(match[1]), int(match[2]), match[3])


def check_cursor(cursor: Cursor, snapshot: Snapshot) -> None:
    """Check a cursor against the log of a lake.

    Raises:
        CursorRefused: it is of another lake, or of a later commit.
    """
    advice = "start again at a masterchain block, with from"
    if cursor.commit > snapshot.number:
        raise CursorRefused(
            f"cursor {cursor} is of commit {cursor.commit}, but the lake has {snapshot.number}"
            f" commits: wait for it, or {advice}"
        )
    try:
        known = _find_digest(cursor.commit, snapshot)
    except LakeError as error:
        raise CursorRefused(f"cursor {cursor} cannot be checked ({error}): {advice}") from error
    if known[:_DIGITS] != cursor.digest:
        raise CursorRefused(f"cursor {cursor} is of another lake: {advice}")


def _find_digest(commit: int, snapshot: Snapshot) -> str:
    if commit == snapshot.number:
        return snapshot.state.digest
    return read_commit(snapshot.lake_dir, commit)[1]


def find_undone(cursor: Cursor, snapshot: Snapshot) -> Range | None:
    """Return the masterchain blocks up to the cursor that were undone since; None if none were."""
    firsts = [
        one.first_mc_seqno
        for one in snapshot.undoings
        if one.commit > cursor.commit and one.first_mc_seqno <= cursor.height
    ]
    return (min(firsts), cursor.height) if firsts else None


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


class Scanner:
    """Runs a scan; for one thread at a time."""

    def __init__(
        self,
        source: ScanRows,
        start: Cursor | int,
        last: int | None,
        open_newest: Callable[[], Snapshot],
        *,
        limit: int | None = None,
    ) -> None:
        """Start at a masterchain block or after a cursor, and end after block ``last``, if any.

        ``open_newest`` returns the newest snapshot of the lake, the same object while it is. With
        ``limit``, the scan ends with the block in which the row count reaches it.

        Raises:
            CursorRefused: the cursor is not of this lake.
        """
        self.source, self.last, self._left = source, last, limit
        self._open_newest = open_newest
        self._snapshot = snapshot = open_newest()
        if isinstance(start, Cursor):
            check_cursor(start, snapshot)
        self.cursor = start if isinstance(start, Cursor) else make_cursor(snapshot, start - 1)
        self._parts: Iterator[Part] = iter(())

    @property
    def is_over(self) -> bool:
        """Whether all requested blocks or rows were read."""
        if self._left is not None and self._left <= 0:
            return True
        return self.last is not None and self.cursor.height >= self.last

    def advance(self) -> Batch | None:
        """Return the next batch; None if the scan is over, or the lake has no more blocks yet.

        Raises:
            BlocksLacking: the next block is missing between ranges, or was pruned.
            LakeCorrupt: a file is missing or damaged.
        """
        newest = self._open_newest()
        if len(newest.undoings) != len(self._snapshot.undoings):
            self._parts = iter(())  # it may be about to read undone blocks
        self._snapshot = newest
        undone = find_undone(self.cursor, newest)
        if undone is not None:
            self.cursor = make_cursor(newest, undone[0] - 1)
            return Batch(self.source.schema.empty_table(), self.cursor, undone)
        try:
            return self._read_batch()
        except LakeCorrupt:
            self._parts = iter(())
            if self._open_newest() is newest:
                raise
            return self.advance()  # the file was merged and removed

    def _read_batch(self) -> Batch | None:
        if self.is_over:
            return None  # parts beyond the limit may be left
        part = next(self._parts, None)
        if part is None:
            span = self._find_span()
            if span is None:
                return None
            self._parts = cut_parts(self.source.read(self._snapshot, span))
            part = next(self._parts)
        rows, height = part
        if self._left is not None:
            if rows.num_rows >= self._left:
                rows, height = cut_rows(rows, self._left)
            self._left -= rows.num_rows
        self.cursor = make_cursor(self._snapshot, height)
        return Batch(rows.remove_column(0), self.cursor, misfits=self.source.take_misfits())

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


def cut_parts(parts: Iterator[Part]) -> Iterator[Part]:
    """Cut parts after masterchain blocks, so that none is much larger than a batch."""
    for part in parts:
        rows = part.rows
        while rows.num_rows > 1 and (rows.num_rows > BATCH_ROWS or rows.nbytes > BATCH_BYTES):
            most = min(BATCH_ROWS, max(1, rows.num_rows * BATCH_BYTES // max(1, rows.nbytes)))
            first, last = cut_rows(rows, most)
            if first.num_rows == rows.num_rows:
                break
            yield Part(first, last)
            rows = rows.slice(first.num_rows)
        yield Part(rows, part.height)


def cut_rows(rows: pa.Table, count: int) -> tuple[pa.Table, int]:
    """Return ``count`` rows and the rest of the last row's masterchain block, and that block."""
    heights = rows[HELD_HEIGHT]
    last: int = heights[count - 1].as_py()
    return rows.slice(0, pc.sum(pc.less_equal(heights, last)).as_py()), last

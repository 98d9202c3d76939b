"""The index of a snapshot: segments on disk and in memory, decoded row groups, and cells."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import iter_dicts, read_rows
from tonlake.lake.index.builder.compose import Source, compose
from tonlake.lake.index.builder.plan import (
    count_rows,
    cut_range,
    files_within,
    is_current,
    is_readable,
    lacks_baseline,
    list_within,
    range_of,
)
from tonlake.lake.index.cells import CellStore, open_cells
from tonlake.lake.index.page import Declined
from tonlake.lake.index.segment.file import SegmentFile, map_segment
from tonlake.lake.index.segment.segment import Segment
from tonlake.lake.index.segments import Segments
from tonlake.lake.log.place import is_open
from tonlake.lake.log.ranges import subtract_ranges
from tonlake.lake.schema import TRACES
from tonlake.lake.schema.transaction import ACCOUNT_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.log.state import DataFile
    from tonlake.lake.settings import LakeSettings

    _Columns = Sequence[str] | None


_READ_BYTES = 2 << 20
"""Default bytes of cached rows: four dozen commits of a dozen transactions."""

_FEW_BYTES = 1 << 20
"""Largest file that is cached as a whole."""

Key = tuple[str, ...]


class KeptSegments:
    """A cache of recently opened or composed segments, whose inputs never change."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._segments: OrderedDict[Key, Segment] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Segment]) -> Segment:
        """Return the segment of a key, opened or composed by ``make`` if it is not cached."""
        with self._lock:
            segment = self._segments.get(key)
        segment = segment or make()
        with self._lock:
            self._segments[key] = segment
            self._segments.move_to_end(key)
        return segment

    def shrink(self, most: int) -> None:
        """Keep at most ``most``, the most recently used ones."""
        with self._lock:
            while len(self._segments) > most:
                self._segments.popitem(last=False)


class KeptRows:
    """A cache of recently read file rows: reading small files takes as long as composing them.

    A commit is composed alone, and again with seven others; then its rows are dropped.
    """

    def __init__(self, max_bytes: int = _READ_BYTES) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._rows: OrderedDict[Key, tuple[int, pa.Table]] = OrderedDict()
        self._bytes = 0
        self._max_bytes = max_bytes

    def keep(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return the rows of a file, and cache them for ``take``."""
        rows = self.take(lake_dir, file, columns)
        with self._lock:
            self._pop(lake_dir, file)  # another thread may have read it as well
            size = rows.get_total_buffer_size()  # may be many times the size of the file
            self._rows[str(lake_dir), file.path, file.sha256] = size, rows
            self._bytes += size
            while self._bytes > self._max_bytes:
                self._bytes -= self._rows.popitem(last=False)[1][0]
        return rows

    def keep_whole(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return columns of a file; if the file is small, cache all of its rows for ``pop``."""
        if file.bytes > _FEW_BYTES:
            return read_rows(lake_dir, file, columns)
        rows = self.keep(lake_dir, file)
        return rows if columns is None else rows.select(columns)

    def pop(self, lake_dir: Path, file: DataFile) -> pa.Table | None:
        """Remove the rows of a file from the cache and return them; None if they are not cached."""
        with self._lock:
            return self._pop(lake_dir, file)

    def take(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return the rows of a file, removing them from the cache; columns are fixed per table."""
        rows = self.pop(lake_dir, file)
        return read_rows(lake_dir, file, columns) if rows is None else rows

    def _pop(self, lake_dir: Path, file: DataFile) -> pa.Table | None:
        size, rows = self._rows.pop((str(lake_dir), file.path, file.sha256), (0, None))
        self._bytes -= size
        return rows


_SPARE = 16
"""Segments kept for other snapshots, in addition to twice as many as the newest one has."""

_TOGETHER = 8
"""Commits composed together: more leaves many single segments to search, fewer composes each
commit more often."""

_kept = KeptSegments()
_read = KeptRows()


def open_segments(snapshot: Snapshot, settings: LakeSettings) -> Segments | None:
    """Return the segments of a snapshot, which cover all of it.

    Return None, so that SQL answers, if too many rows have no segment or a data file is damaged.
    """
    made = [
        segment
        for segment in snapshot.segments
        if is_readable(segment) and not lacks_baseline(snapshot.state, segment)
    ]
    covered = [range_of(segment) for segment in made]
    pieces = subtract_ranges(snapshot.known_ranges, covered)
    loose = [(piece, list_within(snapshot.state, piece)) for piece in pieces]
    if sum(_count_loose(found) for _, found in loose) > settings.index_memory_rows:
        return None
    try:
        segments = [_open_segment(snapshot.lake_dir, segment) for segment in made]
        for piece, found in loose:
            segments += _compose_piece(snapshot.lake_dir, found, piece)
    except LakeCorrupt:
        return None
    _kept.shrink(2 * len(segments) + _SPARE)
    stale = not all(is_current(snapshot.state, segment) for segment in made)
    return Segments(segments, stale=stale)


def _count_loose(files: Sequence[DataFile]) -> int:
    """Return the number of rows to index in memory.

    A zero state, and the kept rows of pruned blocks, have states without transactions.
    """
    states = sum(file.rows for file in files if file.table == ACCOUNT_STATES.name)
    return max(count_rows(files), states)


def _open_segment(lake_dir: Path, segment: DataFile) -> Segment:
    key = (str(lake_dir), segment.path, segment.sha256)
    return _kept.get(key, lambda: Segment(map_segment(lake_dir, segment.path)))


def _compose_piece(lake_dir: Path, files: Sequence[DataFile], piece: Range) -> Iterator[Segment]:
    """Yield the segments of a piece: few, and a new commit seldom changes more than one.

    Commits are composed in powers of ``_TOGETHER``: 21 are 8 + 8 and five single ones.
    """
    commits = cut_range(files, piece)
    at, size = 0, 1
    while 2 * size * _TOGETHER <= len(commits):
        size *= _TOGETHER
    while at < len(commits):
        if at + size <= len(commits):
            mc_range = commits[at][0], commits[at + size - 1][1]
            read = _read.keep if size == 1 else _read.take
            yield _compose(Source(lake_dir, files_within(files, mc_range), mc_range, read))
            at += size
        else:
            size //= _TOGETHER


def _compose(source: Source) -> Segment:
    first, last = source.mc_range
    paths = (file.path for file in source.files)
    key = (str(source.lake_dir), f"{first}-{last}", *paths)
    return _kept.get(key, lambda: compose_segment(source))


def compose_segment(source: Source) -> Segment:
    """Return the segment of a source, composed in memory.

    Raises:
        LakeCorrupt: a file is missing or damaged.
    """
    stream = io.BytesIO()
    compose(stream, source, packed=False)
    first, last = source.mc_range
    return Segment(SegmentFile(stream.getvalue(), f"{first}-{last} in memory"))


MAX_OPEN = 50_000
"""Most traces that may continue that are held in memory."""

Row = dict[str, Any]


class Index:
    """The index of one snapshot; each part declines if the snapshot does not have it."""

    def __init__(
        self,
        snapshot: Snapshot,
        lookups: Segments | None = None,
        cells: CellStore | None = None,
        open_traces: OpenTraces | None = None,
        *,
        may_read: bool = True,
    ) -> None:
        """Take the available parts; without ``may_read`` no data file is read."""
        self.snapshot = snapshot
        self._segments, self._cells, self._may_read = lookups, cells, may_read
        self._open = OpenTraces(snapshot) if open_traces is None else open_traces

    def without_files(self) -> Index:
        """Return the same index for readers that must not wait for file reads."""
        return Index(self.snapshot, self._segments, None, self._open, may_read=False)

    @property
    def segments(self) -> Segments:
        """The segments, complete for the snapshot.

        Raises:
            Declined: there are none.
        """
        if self._segments is None:
            raise Declined
        return self._segments

    @property
    def current(self) -> Segments:
        """The segments, if their traces, actions and contracts are current.

        Raises:
            Declined: they are not, or there are no segments.
        """
        if self.segments.stale:
            raise Declined
        return self.segments

    @property
    def cells(self) -> CellStore:
        """The cells of account states, in memory.

        Raises:
            Declined: there are too many, or they are damaged.
        """
        if self._cells is None:
            raise Declined
        return self._cells

    @property
    def open_traces(self) -> dict[bytes, Row]:
        """The traces that may continue, by id.

        Raises:
            Declined: they are too many, not read yet, or damaged.
        """
        return self._open.read(may_read=self._may_read)


class OpenTraces:
    """The traces of a snapshot that may continue; every commit replaces their file."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Take the files; nothing is read yet."""
        self._snapshot = snapshot
        self._rows: dict[bytes, Row] | None = None

    def read(self, *, may_read: bool) -> dict[bytes, Row]:
        """Return the traces by id.

        Raises:
            Declined: they are too many, damaged, or not read yet though nothing may be read.
        """
        if self._rows is None:
            files = [file for file in self._snapshot.files[TRACES.name] if is_open(file.path)]
            if not may_read or sum(file.rows for file in files) > MAX_OPEN:
                raise Declined
            try:
                tables = [read_rows(self._snapshot.lake_dir, file) for file in files]
            except LakeCorrupt as error:
                raise Declined from error  # SQL names the damaged file
            self._rows = {row["trace_id"]: row for rows in tables for row in iter_dicts(rows)}
        return self._rows


def open_index(snapshot: Snapshot, settings: LakeSettings) -> Index | None:
    """Return the index of a snapshot; None if SQL must answer everything.

    That is the case in a partial copy without some tables: the index would find nothing where SQL
    reports the missing table.
    """
    if snapshot.lacking:
        return None
    return Index(snapshot, open_segments(snapshot, settings), open_cells(snapshot, settings))

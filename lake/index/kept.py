"""Caches of recently used segments and file rows, whose inputs never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from tonlake.lake.file.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from tonlake.lake.index.segment.segment import Segment
    from tonlake.lake.log.state import DataFile

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

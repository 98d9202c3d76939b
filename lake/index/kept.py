"""Segments and rows used last: what they are made of never changes."""

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
"""Bytes of rows that are kept by default: four dozen commits of a dozen transactions."""

_FEW_BYTES = 1 << 20
"""Only a file of no more bytes is kept as a whole."""

Key = tuple[str, ...]


class KeptSegments:
    """Segments opened or composed last; what they are made of never changes."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._segments: OrderedDict[Key, Segment] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Segment]) -> Segment:
        """Return the segment of a key, opened or composed by ``make`` if it is not kept."""
        with self._lock:
            segment = self._segments.get(key)
        segment = segment or make()
        with self._lock:
            self._segments[key] = segment
            self._segments.move_to_end(key)
        return segment

    def shrink(self, most: int) -> None:
        """Keep no more than ``most``, those used last."""
        with self._lock:
            while len(self._segments) > most:
                self._segments.popitem(last=False)


class KeptRows:
    """Rows of files read last: to read small ones takes as long as to compose them.

    A commit is composed alone, and once more with seven others: then its rows are let go.
    """

    def __init__(self, most_bytes: int = _READ_BYTES) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._rows: OrderedDict[Key, tuple[int, pa.Table]] = OrderedDict()
        self._bytes = 0
        self._most_bytes = most_bytes

    def keep(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return the rows of a file, and keep them for ``take``."""
        rows = self.take(lake_dir, file, columns)
        with self._lock:
            self._pop(lake_dir, file)  # Another thread may have been as quick.
            size = rows.get_total_buffer_size()  # of a file that packs well many times its own
            self._rows[str(lake_dir), file.path, file.sha256] = size, rows
            self._bytes += size
            while self._bytes > self._most_bytes:
                self._bytes -= self._rows.popitem(last=False)[1][0]
        return rows

    def keep_whole(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return columns of a file, and keep all of its rows for ``pop`` if it is small."""
        if file.bytes > _FEW_BYTES:
            return read_rows(lake_dir, file, columns)
        rows = self.keep(lake_dir, file)
        return rows if columns is None else rows.select(columns)

    def pop(self, lake_dir: Path, file: DataFile) -> pa.Table | None:
        """Return the rows of a file and let them go; None where they are not kept."""
        with self._lock:
            return self._pop(lake_dir, file)

    def take(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return the rows of a file; kept ones are let go. Of a table, all ask for the same."""
        rows = self.pop(lake_dir, file)
        return read_rows(lake_dir, file, columns) if rows is None else rows

    def _pop(self, lake_dir: Path, file: DataFile) -> pa.Table | None:
        size, rows = self._rows.pop((str(lake_dir), file.path, file.sha256), (0, None))
        self._bytes -= size
        return rows

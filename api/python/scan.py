"""Scans in Python: rows of tables in chain order, in batches."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tonlake.api.python.result import Result
from tonlake.api.scan.opening import open_scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tonlake.api.python.source import Opened
    from tonlake.api.scan.query import Scan
    from tonlake.queries.reader import Reader

POLL_S = 0.1
"""Interval at which a following scan looks for a new commit."""


class ScanBatch(NamedTuple):
    """All rows of the masterchain blocks after the previous batch, up to block ``height``.

    With ``undone`` (first and last block no longer in the chain) there are no rows: delete the
    rows of these blocks; the blocks that replace them follow. A scan with ``cursor`` resumes after
    the batch. ``misfits`` counts, by table, the bodies read that do not match their signature; the
    table with the suffix ``_misfits`` contains them.
    """

    rows: Result
    cursor: str
    height: int
    undone: tuple[int, int] | None = None
    misfits: Mapping[str, int] = {}

    def table(self, name: str) -> Result:
        """Return the rows of one of several tables.

        Raises:
            KeyError: the scan has no such table.
        """
        structs = self.rows.arrow()[name].combine_chunks().drop_null()
        return Result(pa.Table.from_struct_array(structs), test_only=self.rows.test_only)


def scan_batches(opened: Opened, scan: Scan) -> Iterator[ScanBatch]:
    """Yield the batches of a scan, endlessly with ``follow``.

    Raises:
        RequestInvalid, ScanError, LakeCorrupt, StorageError: the scan cannot be run.
    """
    newest = _Newest(opened)
    test_only = opened.test_only
    with opened.source.naming_faults():
        settings = opened.source.settings.lake
        scanner = open_scan(scan, newest.open(), settings, newest.open, newest.open_file)
        try:
            # A finished scan may still have undone blocks to report.
            while (batch := scanner.advance()) is not None or not scanner.is_over:
                if batch is None:
                    time.sleep(POLL_S)
                    continue
                rows = Result(batch.rows, test_only=test_only)
                cursor, height = str(batch.cursor), batch.cursor.height
                yield ScanBatch(rows, cursor, height, batch.undone, batch.misfits)
        finally:
            scanner.close()


class _Newest:
    """The newest snapshot of a lake; in object storage, the snapshot that is open."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._reader = opened.call().reader

    def open(self) -> Reader:
        """Return a reader of the newest snapshot, reused until there is a new commit."""
        log = self._opened.source.log
        if log is not None:
            newest = log.read().number
            if newest > self._opened.snapshot.number:
                self._opened = self._opened.source.open()
                self._reader = self._opened.call().reader
        return self._reader

    def open_file(self, path: str) -> AbstractContextManager[Any]:
        """Open a file of the lake for Arrow."""
        storage = self._opened.source.storage
        if storage is not None:
            return storage.open(path)
        folder: Path = self._opened.snapshot.lake_dir
        return nullcontext(str(folder / path))

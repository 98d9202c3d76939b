"""Scans in Python: batches of a table's rows in chain order."""

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

LOOK_S = 0.1
"""How often a scan that follows looks for a new commit."""


class ScanBatch(NamedTuple):
    """All rows of the masterchain blocks behind the batch before, up to block ``height``.

    With ``undone``, first and last of blocks that are no part of the chain any more, it has no
    rows: drop those of these blocks; the blocks in their place follow. A scan that begins with
    ``cursor`` resumes after the batch. ``misfits`` are the bodies that were read for it and do not
    fit their signature, by its table; the table with ``_misfits`` behind its name has them.
    """

    rows: Result
    cursor: str
    height: int
    undone: tuple[int, int] | None = None
    misfits: Mapping[str, int] = {}

    def table(self, name: str) -> Result:
        """Return the rows of one of several tables.

        Raises:
            KeyError: it is none of the scan's.
        """
        structs = self.rows.arrow()[name].combine_chunks().drop_null()
        return Result(pa.Table.from_struct_array(structs), test_only=self.rows.test_only)


def scan_batches(opened: Opened, scan: Scan) -> Iterator[ScanBatch]:
    """Yield the batches of a scan; one that follows has no end.

    Raises:
        RequestInvalid, ScanError, LakeCorrupt, StorageError: it cannot be carried out.
    """
    newest = _Newest(opened)
    test_only = opened.test_only
    with opened.source.naming_faults():
        settings = opened.source.settings.lake
        scanner = open_scan(scan, newest.open(), settings, newest.open, newest.open_file)
        try:
            # A scan that is over may still have blocks to report that were undone.
            while (batch := scanner.advance()) is not None or not scanner.is_over:
                if batch is None:
                    time.sleep(LOOK_S)
                    continue
                rows = Result(batch.rows, test_only=test_only)
                cursor, height = str(batch.cursor), batch.cursor.height
                yield ScanBatch(rows, cursor, height, batch.undone, batch.misfits)
        finally:
            scanner.close()


class _Newest:
    """The newest snapshot of a lake; in object storage the one that is open."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._reader = opened.call().reader

    def open(self) -> Reader:
        """Return a reader of the snapshot, the same one as long as the log has no more entries."""
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

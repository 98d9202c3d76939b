"""Scans in Python: rows of tables in chain order, in batches."""

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from tonlake.api.python.result import Result
from tonlake.api.python.source import Opened
from tonlake.api.scan.opening import open_scan
from tonlake.api.scan.query import Scan
from tonlake.lake.log.snapshot import Snapshot

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
        """Return the rows of one of several tables. Raises KeyError without such a table."""
        structs = self.rows.arrow()[name].combine_chunks().drop_null()
        return Result(pa.Table.from_struct_array(structs), test_only=self.rows.test_only)


def scan_batches(opened: Opened, scan: Scan) -> Iterator[ScanBatch]:
    """Yield the batches of a scan, endlessly with ``follow``; raises as ``Lake.scan``."""
    newest, test_only = opened, opened.test_only

    def open_newest() -> Snapshot:
        nonlocal newest
        log = opened.source.log
        if log is not None and log.read().number > newest.snapshot.number:
            newest = opened.source.open()
        return newest.snapshot

    with opened.source.naming_faults():
        settings = opened.source.settings.lake
        scanner = open_scan(
            scan, opened.call().reader, settings, open_newest, opened.source.storage
        )
        # A finished scan may still have undone blocks to report.
        while (batch := scanner.advance()) is not None or not scanner.is_over:
            if batch is None:
                time.sleep(POLL_S)
                continue
            rows = Result(batch.rows, test_only=test_only)
            cursor, height = str(batch.cursor), batch.cursor.height
            yield ScanBatch(rows, cursor, height, batch.undone, batch.misfits)

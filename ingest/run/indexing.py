"""Builds index segments for the commits of an ingest while it runs.

Any process can build a segment; the coordinator only adds it to the log. Which segments there are,
and where they are in the log, depends on the lake alone, not on the number of workers. With several
workers, separate processes build segments, so that their memory does not add to that of other
stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.spread import HERE
from tonlake.lake.index.builder.plan import choose_rows, list_due
from tonlake.lake.index.builder.rebuild import (
    MAX_ROWS,
    build_segment,
    commit_segments,
    order_segment,
    rebuild_index,
)
from tonlake.lake.log.reader import LogReader

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from tonlake.ingest.settings import IngestSettings
    from tonlake.ingest.spread import Spread
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile, LogState


_ROW_BYTES = 4_000
"""Bytes of memory per transaction while a segment of some 100,000 is built."""


class Indexing:
    """Builds the segments of a growing lake: ``advance`` after commits, ``finish`` at the end."""

    def __init__(
        self, lake_dir: Path, settings: IngestSettings, spread: Spread | None = None
    ) -> None:
        """Build nothing yet; ``spread`` are the processes that build segments."""
        self._easy_rows = settings.commit_bytes // _ROW_BYTES
        self._lake_dir, self._spread = lake_dir, spread or HERE
        self._log = LogReader(lake_dir)
        self._ahead: dict[Range, int] = {}
        self._building: list[tuple[LogState, Future[DataFile]]] = []

    def advance(self) -> None:
        """Start building the segments that are due, after committing those started before."""
        due = list_due(self._log.read(), self._ahead, MAX_ROWS, self._easy_rows)
        if not due:
            return
        self._name()
        state = self._log.read()
        for mc_range in due:
            order = order_segment(self._lake_dir, state, mc_range)
            self._building.append((state, self._spread.submit(build_segment, order)))
        self._ahead = due

    def finish(self) -> None:
        """Commit the segments started before, and index the remaining blocks."""
        self._name()
        before = sum(each.rows for each in self._log.find().segments)
        rows = choose_rows(before, MAX_ROWS, self._easy_rows)
        rebuild_index(self._lake_dir, max_rows=rows, run=self._spread.map)

    def _name(self) -> None:
        """Commit the segments started before."""
        built = [(state, task.result()) for state, task in self._building]
        if built:
            commit_segments(self._log, built[0][0], [segment for _, segment in built])
        self._building, self._ahead = [], {}

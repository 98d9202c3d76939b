"""Index segments of what an ingest commits, built while it goes on.

Any process builds a segment; the one that commits only names it in the log. Which segments there
are, and where in the log they are named, follows from the lake alone: from no number of workers.
With several workers, processes that build segments do nothing else: what one needs for that does
not come on top of what other stages hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.spread import HERE
from tonlake.lake.index.builder.plan import choose_rows, list_due
from tonlake.lake.index.builder.rebuild import (
    MOST_ROWS,
    build_segment,
    commit_segments,
    order_segment,
    rebuild_index,
)
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.log.reader import LogReader

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from tonlake.ingest.settings import IngestSettings
    from tonlake.ingest.spread import Spread
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile, LogState


_ROW_BYTES = 1_000
"""Memory of a transaction while a segment of some 100,000 is built."""


class Indexing:
    """Builds the segments of a growing lake; call ``go_on`` after commits, ``finish`` at the end.

    Without the extension there are none.
    """

    def __init__(
        self, lake_dir: Path, settings: IngestSettings, spread: Spread | None = None
    ) -> None:
        """Build nothing yet; ``spread`` are the processes that do."""
        self._easy_rows = settings.commit_bytes // _ROW_BYTES
        self._lake_dir, self._spread = lake_dir, spread or HERE
        self._log = LogReader(lake_dir)
        self._ahead: dict[Range, int] = {}
        self._building: list[tuple[LogState, Future[DataFile]]] = []

    def go_on(self) -> None:
        """Begin the segments that are due, once those begun before are named in the log.

        Raises:
            LakeCorrupt, LakeFull, WorkerLost: one of those could not be built.
        """
        if NATIVE is None:
            return
        due = list_due(self._log.read(), self._ahead, MOST_ROWS, self._easy_rows)
        if not due:
            return
        self._name()
        state = self._log.read()
        for mc_range in due:
            order = order_segment(self._lake_dir, state, mc_range)
            self._building.append((state, self._spread.submit(build_segment, order)))
        self._ahead = due

    def finish(self) -> None:
        """Name what was begun, and index the blocks that are left.

        Raises:
            LakeNotFound, LakeCorrupt, LakeFull, WorkerLost: a segment could not be built.
        """
        self._name()
        before = sum(each.rows for each in self._log.find().segments)
        rows = choose_rows(before, MOST_ROWS, self._easy_rows)
        rebuild_index(self._lake_dir, most_rows=rows, run=self._spread.map)

    def _name(self) -> None:
        """Name in the log what was begun."""
        built = [(state, task.result()) for state, task in self._building]
        if built:
            commit_segments(self._log, built[0][0], [segment for _, segment in built])
        self._building, self._ahead = [], {}

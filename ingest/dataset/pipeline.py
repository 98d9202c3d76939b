"""Ingests days of the public data set into a lake, with the derivations of every other source."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.blocks import McHead
from tonlake.ingest.dataset.chain import Tops
from tonlake.ingest.dataset.day import Day
from tonlake.ingest.errors import BlockNeverHad
from tonlake.ingest.run.pipeline import IngestReport, Pipeline
from tonlake.lake.commit.delta import publish
from tonlake.lake.log.disk import make_folder
from tonlake.lake.log.state import LOG_FOLDER, REPORTED_KIND
from tonlake.lake.schema import CONFIG_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import date
    from pathlib import Path

    from tonlake.ingest.blocks import McBundle, ZeroState
    from tonlake.ingest.dataset.files import DataSet
    from tonlake.ingest.decode.piece import Hole, Piece
    from tonlake.ingest.run.pipeline import Progress
    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.span import Span


class DayReport(msgspec.Struct):
    """What became of a day: the report of its masterchain blocks, or why there are none."""

    day: str
    ingest: IngestReport | None = None
    lacking: list[str] = []


class DaySource:
    """A day as a source of blocks: it has rows of them, and not the blocks."""

    def __init__(self, day: Day, name: str) -> None:
        """Take the day, and the name of the data set."""
        self.day, self._name = day, name

    def refresh(self) -> None:
        """Do nothing, as a day does not grow."""

    def first_mc_seqno(self) -> int:
        """Return the first masterchain block of the day."""
        return min(self.day.heads)

    def last_mc_seqno(self) -> int:
        """Return the last masterchain block of the day."""
        return max(self.day.heads)

    def read_bundle(self, mc_seqno: int) -> McBundle:
        """Raise BlockNeverHad: there are only rows."""
        raise BlockNeverHad("the data set has its rows only", block=mc_seqno)

    read_unchecked = read_bundle

    def find_head(self, mc_seqno: int) -> McHead | None:
        """Return a masterchain block of the day."""
        root_hash = self.day.heads.get(mc_seqno)
        return None if root_hash is None else McHead(mc_seqno, root_hash, None)

    def zero_states(self) -> tuple[ZeroState, ...]:
        """Return nothing: their cells are not in the data set."""
        return ()

    def describe(self) -> dict[str, str]:
        """Return the origin of the rows for the commit log."""
        return {"kind": REPORTED_KIND, "name": self._name}

    def close(self) -> None:
        """Close the day."""
        self.day.close()


class DatasetPipeline(Pipeline):
    """Ingests one day after the other; the caches of derivations last from day to day."""

    def __init__(self, source: DaySource, lake_dir: Path, settings: IngestSections) -> None:
        """Start with the first day."""
        super().__init__(source, lake_dir, settings)
        self.day = source.day
        self._tops = Tops()

    def _read(self, span: Span) -> Iterator[list[Piece | Hole]]:
        """Yield the pieces and holes of a span of the day, in order."""
        state = self.log.read()
        self._tops.read(self.lake_dir, state, span.first - 1)
        self.day.knows_config = CONFIG_PARAMS.name in state.by_table
        return self.day.read(span, self._tops)


def ingest_days(
    dataset: DataSet,
    days: Iterable[date],
    lake_dir: Path,
    settings: IngestSections,
    *,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Iterator[DayReport]:
    """Ingest days in order, and yield a report of each; what the lake has is skipped.

    Raises:
        SourceError: a file is damaged or has other columns, or the lake is of another network;
            the days and masterchain blocks before are in the lake.
    """
    make_folder(lake_dir / LOG_FOLDER)
    pipeline: DatasetPipeline | None = None
    try:
        for day in days:
            lacking = dataset.list_lacking(day)
            if lacking:
                yield DayReport(day.isoformat(), lacking=lacking)
                continue
            with closing(Day(dataset, day, lake_dir, settings.lake)) as opened:
                source = DaySource(opened, dataset.name)
                if pipeline is None:
                    pipeline = DatasetPipeline(source, lake_dir, settings)
                pipeline.source, pipeline.day = source, opened
                report = None if opened.span is None else pipeline.bring(opened.span, on_progress)
            if report is not None and report.commits:
                publish(pipeline.log, settings.lake)
            yield DayReport(day.isoformat(), report)
    finally:
        if pipeline is not None:
            pipeline.close()

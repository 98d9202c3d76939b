"""Ingest whose decoding is done by Spark; commits, and what needs order, are the driver's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tonlake.ingest.assemble.chunk import NOT_YET
from tonlake.ingest.decode.parallel import Hole, Piece
from tonlake.ingest.run.pipeline import Pipeline
from tonlake.ingest.span import Span
from tonlake.ingest.spark.decode import SPARK_SCHEMA, make_decoder, unpack_outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tonlake.ingest.blocks import BlockSource
    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.source.origin import Origin

TASKS_PER_CORE = 2
"""Tasks of one job; the driver holds the results of two jobs at a time."""

_ROWS_PER_BATCH = 32
"""Rows hold serialized tables: Spark's default of 10,000 would overflow an Arrow batch."""


class SparkPipeline(Pipeline):
    """From a source that every worker of a cluster can reach into one lake of the driver's."""

    def __init__(
        self,
        session: SparkSession,
        origin: Origin,
        source: BlockSource,
        lake_dir: Path,
        settings: IngestSections,
    ) -> None:
        """Take Spark, and the source twice: as workers open it, and opened."""
        super().__init__(source, lake_dir, settings)
        self._session = session
        self._decoder = make_decoder(origin, settings)
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ROWS_PER_BATCH))

    def _decode(self, span: Span) -> Iterator[list[Piece | Hole]]:
        """Yield the pieces and holes of a span, in order; one job is ahead of the commits."""
        tasks = self._session.sparkContext.defaultParallelism * TASKS_PER_CORE
        jobs = cut_span(span, self.settings.ingest.mc_blocks_per_chunk * tasks)
        with ThreadPoolExecutor(1) as ahead:
            result = ahead.submit(self._run_job, next(jobs))
            for job in [*jobs, None]:
                table = result.result()
                if job is not None:
                    result = ahead.submit(self._run_job, job)
                outcomes, stopped_at = cut_at_end(unpack_outcomes(table))
                yield outcomes
                if stopped_at is not None:
                    self.report.stopped_at = stopped_at
                    return

    def _run_job(self, span: Span) -> pa.Table:
        from pyspark.sql.functions import col, least, lit  # noqa: PLC0415 - an extra

        size = self.settings.ingest.mc_blocks_per_chunk
        tasks = -(-len(span) // size)
        first = col("id") * size + span.first
        last = least(first + (size - 1), lit(span.last))
        spans = self._session.range(0, tasks, 1, tasks).select(
            first.alias("first"), last.alias("last")
        )
        return spans.mapInArrow(self._decoder, SPARK_SCHEMA).toArrow()


def cut_span(span: Span, mc_blocks: int) -> Iterator[Span]:
    """Yield a span in parts of at most ``mc_blocks`` masterchain blocks."""
    for first in range(span.first, span.last + 1, mc_blocks):
        yield Span(first, min(first + mc_blocks - 1, span.last))


def cut_at_end(outcomes: Iterator[Piece | Hole]) -> tuple[list[Piece | Hole], int | None]:
    """Return what comes before the first block that is not there yet, and its seqno or None."""
    before: list[Piece | Hole] = []
    for outcome in outcomes:
        if isinstance(outcome, Hole) and outcome.kind == NOT_YET:
            return before, outcome.mc_seqno
        before.append(outcome)
    return before, None

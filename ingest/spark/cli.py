"""The command ``tonlake spark ingest``: ingests a node's blocks, decoded by Apache Spark.

The driver does the commits and everything that needs order. A decoded piece has rows of twenty
tables, but Spark transports a single schema, so each piece is sent as one value.
"""

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from tonlake.ingest.assemble.batch import Hole, Piece
from tonlake.ingest.assemble.chunk import VersionRegistry
from tonlake.ingest.command.ingest import EXIT_PARTIAL, print_report, read_range
from tonlake.ingest.command.node import choose_folder, keep_apart, node_option
from tonlake.ingest.errors import IngestError
from tonlake.ingest.run.pipeline import IngestReport, Pipeline
from tonlake.ingest.run.workers import cut_span, read_pieces
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span
from tonlake.lake.command.argument import (
    Folder,
    FolderOrURL,
    make_lake_option,
    read_pairs,
    spark_options,
)
from tonlake.lake.command.cli import failing_cleanly, read_settings
from tonlake.lake.commit.delta import publish
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.file.rows import iter_tuples
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.state import LogReader
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.spark.tables import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tonlake.ingest.blocks import BlockSource

SCHEMA = pa.schema([("first", pa.int64()), ("size", pa.int64()), ("outcome", pa.binary())])
"""A pickled piece or hole, compressed, its size before, and its first masterchain block."""

SPARK_SCHEMA = "first bigint, size bigint, outcome binary"
"""The same schema for Spark."""


def make_decoder(
    origin: Origin, settings: IngestSections
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow`` that turns spans (``first``, ``last``) into rows."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spans = [Span(**row) for batch in batches for row in batch.to_pylist()]
        if not spans:
            return
        with closing(origin.open(settings)) as source:
            versions = VersionRegistry(source)
            for span in spans:
                for outcomes in read_pieces(source, span, settings.ingest, versions):
                    yield from map(pack_outcome, outcomes)

    return decode


def pack_outcome(outcome: Piece | Hole) -> pa.RecordBatch:
    """Return a piece or a hole as a row of ``SCHEMA``."""
    first = outcome.mc_seqno if isinstance(outcome, Hole) else outcome.first
    data = pickle.dumps(outcome, protocol=5)
    row = first, len(data), pa.compress(data, codec="zstd", asbytes=True)
    return pa.record_batch([[value] for value in row], schema=SCHEMA)


TASKS_PER_CORE = 2
"""Tasks of one job; the driver holds the results of two jobs at a time."""

_ROWS_PER_BATCH = 32
"""Rows contain serialized pieces: Spark's default of 10,000 would overflow an Arrow batch."""


class SparkPipeline(Pipeline):
    """Ingests a source that every worker of a cluster can open into a lake of the driver."""

    def __init__(
        self,
        session: "SparkSession",
        origin: Origin,
        source: "BlockSource",
        lake_dir: Path,
        settings: IngestSections,
    ) -> None:
        """Use the source twice: workers open ``origin``, the driver reads ``source``."""
        super().__init__(source, lake_dir, settings)
        self._session = session
        self._decoder = make_decoder(origin, settings)
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ROWS_PER_BATCH))

    def _read(self, span: Span) -> Iterator[list[Piece | Hole]]:
        tasks = self._session.sparkContext.defaultParallelism * TASKS_PER_CORE
        jobs = cut_span(span, self.settings.ingest.mc_blocks_per_chunk * tasks)
        with ThreadPoolExecutor(1) as ahead:
            result = ahead.submit(self._run_job, next(jobs))
            for job in [*jobs, None]:
                table = result.result()
                if job is not None:
                    result = ahead.submit(self._run_job, job)
                yield [
                    pickle.loads(pa.decompress(packed, size, codec="zstd"))  # noqa: S301 - our workers'
                    for _first, size, packed in sorted(iter_tuples(table, SCHEMA.names))
                ]

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


@click.command("ingest")
@node_option
@click.option("--packs", type=Folder(), help="Folder of archive packages, without a node.")
@make_lake_option("lake")
@click.option(
    "--to",
    "place",
    type=FolderOrURL(Folder(exists=False)),
    help="Destination of the export, such as s3://bucket/prefix.",
)
@click.option("--range", "range_text", default=":", help="Masterchain blocks, such as 1000:2000.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@spark_options
def spark_ingest_command(
    *,
    node: Path | None,
    packs: Path | None,
    lake: Path,
    place: Path | str | None,
    range_text: str,
    as_json: bool,
    master: str,
    conf: tuple[str, ...],
) -> None:
    """Decode a node's blocks with Apache Spark, and commit them to the lake from here."""
    node = choose_folder(node, elsewhere=packs is not None)
    if (node is None) == (packs is None):
        raise click.UsageError("name one source: --node DIR or --packs DIR")
    keep_apart(lake, node, packs)
    origin = Origin(node and node.absolute(), packs and packs.absolute())
    settings = read_settings(IngestSections)
    spark_settings = read_pairs(conf, "--conf")
    with failing_cleanly(IngestError):
        report = _bring(origin, lake, range_text, settings, master, spark_settings)
        if settings.lake.build_index and report.commits:
            rebuild_index(lake)
        publish(LogReader(lake), settings.lake)
        if place is not None:
            copy_lake(lake, place)
    print_report(report, as_json=as_json)
    if report.holes or report.stopped_at is not None:
        sys.exit(EXIT_PARTIAL)


def _bring(
    origin: Origin,
    lake: Path,
    range_text: str,
    settings: IngestSections,
    master: str,
    conf: dict[str, str],
) -> IngestReport:
    with ExitStack() as stack:
        source = stack.enter_context(closing(origin.open(settings)))
        span = read_range(source, range_text)
        sweep_orphans(lake, settings.lake)
        session = stack.enter_context(open_session(master, conf))
        pipeline = SparkPipeline(session, origin, source, lake, settings)
        return stack.enter_context(closing(pipeline)).bring(span)

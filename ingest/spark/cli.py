"""The command ``tonlake spark ingest``: ingests a node's blocks, decoded by Apache Spark."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import click

from tonlake.ingest.command.ingest import EXIT_DATA, EXIT_PARTIAL, print_report
from tonlake.ingest.command.node import choose_node, keep_apart, node_option
from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import SpanError, choose_span
from tonlake.lake.command.argument import Folder, FolderOrURL, make_lake_option, read_pairs
from tonlake.lake.command.cli import failing_cleanly, read_settings
from tonlake.lake.commit.delta import publish
from tonlake.lake.copy.pull import copy_lake
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.reader import LogReader
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.spark.cli import conf_option, master_option
from tonlake.lake.spark.tables import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.run.pipeline import IngestReport

EXAMPLES = """
Examples:

\b
  tonlake spark ingest --node /mnt/node/db --lake mainnet.lake --master local[16]
  tonlake spark ingest --packs /mnt/archive --lake old.lake --master spark://host:7077
  tonlake spark ingest --node /mnt/node/db --lake mainnet.lake --to s3://bucket/mainnet

Every worker opens the source itself, at the same path, and has tonlake installed. The lake is a
folder of the machine that runs this command, which makes all commits: files and log are the same
as with tonlake ingest. --to copies new files to object storage after the last commit.
"""


@click.command("ingest", epilog=EXAMPLES)
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
@master_option
@conf_option
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
    node = choose_node(node, elsewhere=packs is not None)
    if (node is None) == (packs is None):
        raise click.UsageError("name one source: --node DIR or --packs DIR")
    keep_apart(lake, node, packs)
    origin = Origin(node and node.absolute(), packs and packs.absolute())
    settings = read_settings(IngestSections)
    spark_settings = read_pairs(conf, "--conf")
    with failing_cleanly():
        try:
            report = _bring(origin, lake, range_text, settings, master, spark_settings)
        except SpanError as error:
            raise click.UsageError(str(error)) from error
        except IngestError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(EXIT_DATA)
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
        span = choose_span(source, range_text)
        sweep_orphans(lake, settings.lake.orphan_grace_s)
        session = stack.enter_context(open_session(master, conf))
        from tonlake.ingest.spark.pipeline import SparkPipeline  # noqa: PLC0415 - needs an extra

        pipeline = SparkPipeline(session, origin, source, lake, settings)
        return stack.enter_context(closing(pipeline)).bring(span)

"""Adds days of the public data set to a lake for ``tonlake ingest --dataset``."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.ingest.dataset.files import DataSet, parse_days
from tonlake.ingest.dataset.pipeline import ingest_days
from tonlake.lake.commit.delta import publish
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.reader import LogReader
from tonlake.lake.maintenance.orphan import sweep_orphans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tonlake.ingest.dataset.pipeline import DayReport
    from tonlake.ingest.run.pipeline import IngestReport, Progress
    from tonlake.ingest.settings import IngestSections


def bring_days(
    place: Path | str,
    days: str,
    lake_dir: Path,
    settings: IngestSections,
    show: Callable[[Progress], None],
) -> Iterator[DayReport]:
    """Add days to the lake, yield a report of each, and index them.

    Raises:
        UsageError: ``days`` is no range of days.
        IngestError, LakeError: what came before is in the lake.
    """
    try:
        chosen = parse_days(days)
    except ValueError as error:
        raise click.UsageError(f"--days {error}") from error
    sweep_orphans(lake_dir, settings.lake.orphan_grace_s)
    with closing(DataSet(place)) as dataset:
        yield from ingest_days(dataset, chosen, lake_dir, settings, on_progress=show)
    log = LogReader(lake_dir)
    if log.read().number:
        if settings.lake.build_index:
            rebuild_index(lake_dir)
        publish(log, settings.lake)


def print_day(report: DayReport, show: Callable[[IngestReport], None], *, as_json: bool) -> bool:
    """Print the report of a day by ``show``, or as JSON; return whether the day is complete."""
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    elif report.ingest is not None:
        click.echo(f"{report.day}:")
        show(report.ingest)
    else:
        what = ", ".join(report.lacking) or "masterchain block"
        click.echo(f"{report.day}: the data set has no {what} of this day", err=True)
    return report.ingest is not None and not report.ingest.holes

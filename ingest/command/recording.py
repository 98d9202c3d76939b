"""Adds recorded traces to a lake for ``tonlake ingest --traces``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.ingest.derive.recording.replay import replay_traces
from tonlake.lake.commit.delta import publish
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.reader import LogReader

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections


def replay_recording(
    recording: Path, lake_dir: Path, settings: IngestSections, *, as_json: bool
) -> None:
    """Add a file of recorded traces to the lake, and print a report."""
    report = replay_traces(recording, lake_dir, settings)
    if settings.lake.build_index and report.commits:
        rebuild_index(lake_dir)
    publish(LogReader(lake_dir), settings.lake)
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
        return
    rows = ", ".join(f"{count:,} {name}" for name, count in report.rows.items())
    click.echo(
        f"{recording.name}: {report.commits} commit(s)" + (f"; rows: {rows}" if rows else "")
    )
    if report.skipped:
        click.echo(
            f"skipped {len(report.skipped)} spans that are already in the lake: {report.skipped[0]}"
            + (" and others" if len(report.skipped) > 1 else ""),
            err=True,
        )

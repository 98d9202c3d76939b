"""What people ask of traces on the command line: to take recorded ones in, to make all anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.ingest.derive.recording.replay import replay_traces
from tonlake.ingest.derive.trace.rebuild import rebuild_traces
from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.lake.command.cli import failing_cleanly, lake_option, read_settings, tell_rebuilt
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.schema import TRACES, TRANSACTION_TRACES

if TYPE_CHECKING:
    from pathlib import Path


def replay_recording(
    recording: Path, lake_dir: Path, settings: IngestSections, *, as_json: bool
) -> None:
    """Bring a file of recorded traces into the lake, and say what was done."""
    report = replay_traces(recording, lake_dir, settings)
    if settings.lake.build_index and report.commits:
        rebuild_index(lake_dir)
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
        return
    rows = ", ".join(f"{count:,} {name}" for name, count in report.rows.items())
    click.echo(
        f"{recording.name}: {report.commits} commit(s)" + (f"; rows: {rows}" if rows else "")
    )
    if report.skipped:
        click.echo(
            f"skipped {len(report.skipped)} spans that the lake has: {report.skipped[0]}"
            + (" and others" if len(report.skipped) > 1 else ""),
            err=True,
        )


@click.command("traces", epilog="Example: tonlake rebuild traces --lake mainnet.lake")
@lake_option
def rebuild_traces_command(*, lake_dir: Path) -> None:
    """Drop all traces and derive them from the transactions and messages of the lake."""
    with failing_cleanly():
        settings = read_settings(IngestSections)
        try:
            commit = rebuild_traces(lake_dir, settings.lake)
        except IngestError as error:
            raise click.ClickException(str(error)) from error
    tell_rebuilt(commit, "traces", (TRANSACTION_TRACES.name, TRACES.name))

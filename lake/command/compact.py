"""The command ``tonlake compact``: merges small files into large ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.lake.command.argument import lake_option
from tonlake.lake.command.cli import failing_cleanly, json_option, read_settings, show_progress
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.settings import LakeSections

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = """
Examples:

\b
  tonlake compact --lake mainnet.lake
  tonlake compact --lake mainnet.lake --json
  TONLAKE_LAKE_COMPACT_ROWS=2000000 tonlake compact --lake mainnet.lake

Merged files stay for active readers; tonlake verify --sweep removes them after the grace
period (setting [lake] orphan_grace_s). The lake can be read and written meanwhile.
"""


@click.command("compact", epilog=EXAMPLES)
@lake_option
@json_option
def compact_command(*, lake_dir: Path, as_json: bool) -> None:
    """Merge small files into large ones, day by day; rows and index do not change."""
    with failing_cleanly(), show_progress("files") as show:
        settings = read_settings(LakeSections).lake
        report = compact_lake(lake_dir, settings, on_files=show)
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    if not report.commits:
        click.echo("nothing to merge")
        return
    click.echo(
        f"{report.files_before:,} files with {report.bytes_before:,} bytes became "
        f"{report.files_after:,} with {report.bytes_after:,}, in {report.commits:,} commit(s)"
    )


commands: list[click.Command] = [compact_command]

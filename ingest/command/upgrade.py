"""The command ``tonlake upgrade``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tonlake.ingest.run.upgrade import upgrade_lake
from tonlake.ingest.settings import IngestSections
from tonlake.lake.command.cli import failing_cleanly, lake_option, read_settings

if TYPE_CHECKING:
    from pathlib import Path


@click.command("upgrade", epilog="Example: tonlake upgrade --lake mainnet.lake")
@lake_option
def upgrade_command(*, lake_dir: Path) -> None:
    """Bring a lake of an earlier version to what this one knows.

    Its files stay; what it lacks is derived from them in ordinary commits: traces, contracts,
    actions, index. The same command continues where it was stopped.
    """
    done = 0
    with failing_cleanly():
        settings = read_settings(IngestSections)
        for what, commit in upgrade_lake(lake_dir, settings):
            done += 1
            click.echo(f"commit {commit.number}: {what}")
    if not done:
        click.echo("nothing to do: the lake has all that this version knows")

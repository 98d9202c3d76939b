"""The command that decodes the bodies of a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tonlake.ingest.derive.body.rebuild import rebuild_bodies
from tonlake.lake.command.cli import failing_cleanly, lake_option, read_settings, show_progress
from tonlake.lake.settings import LakeSections

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = """
Examples:

\b
  tonlake rebuild bodies --lake mainnet.lake
  tonlake sql "select decoded_opcode, count(*) from decoded_messages group by 1" \\
      --lake mainnet.lake

Ingest decodes the bodies of what it commits; this is for ranges that older versions committed,
and with --all for new layouts.
"""


@click.command("bodies", epilog=EXAMPLES)
@lake_option
@click.option("--all", "everything", is_flag=True, help="Decode all bodies again.")
def rebuild_bodies_command(*, lake_dir: Path, everything: bool) -> None:
    """Decode message bodies into a table, of all ranges that have none decoded yet."""
    with failing_cleanly(), show_progress("ranges") as show:
        settings = read_settings(LakeSections).lake
        count = rebuild_bodies(lake_dir, settings, everything=everything, on_range=show)
    click.echo(f"bodies of {count:,} range(s) decoded" if count else "all bodies are decoded")

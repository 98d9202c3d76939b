"""The command ``tonlake prune``: removes old blocks from a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.lake.command.argument import lake_option
from tonlake.lake.command.cli import (
    failing_cleanly,
    json_option,
    read_settings,
    show_progress,
)
from tonlake.lake.commit.commit import is_day
from tonlake.lake.maintenance.prune import PruneReport, prune_lake
from tonlake.lake.settings import LakeSections

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = """
Examples:

\b
  tonlake prune --lake mainnet.lake --before 2026-11-01 --dry-run
  tonlake prune --lake mainnet.lake --before 2026-11-01
  tonlake prune --lake mainnet.lake --before 41000000 --json

Rows that later blocks build on stay, such as the newest state of every account. Old files stay for
active readers; tonlake verify --sweep removes them after the grace period (setting [lake]
orphan_grace_s). The lake can be read and written meanwhile.
"""


class _Border(click.ParamType[int | str]):
    """A masterchain seqno, or a UTC day as ``YYYY-MM-DD``."""

    name = "DATE|SEQNO"

    def convert(
        self, value: int | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        text = str(value)
        if text.isascii() and text.isdecimal() and int(text):
            return int(text)
        if not is_day(text):
            self.fail(f"{text!r} is neither a day, such as 2026-11-01, nor a seqno", param, ctx)
        return text


@click.command("prune", epilog=EXAMPLES)
@lake_option
@click.option(
    "--before",
    type=_Border(),
    required=True,
    help="First UTC day, or masterchain block, that stays.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be pruned; write nothing.")
@json_option
def prune_command(*, lake_dir: Path, before: int | str, dry_run: bool, as_json: bool) -> None:
    """Remove the blocks before a day or a seqno; answers about later ones stay the same."""
    with failing_cleanly(), show_progress("tables") as show:
        settings = read_settings(LakeSections).lake
        report = prune_lake(lake_dir, before, settings, dry_run=dry_run, on_table=show)
    if as_json:
        freed = {} if dry_run else {"bytes_freed": report.bytes_freed}
        click.echo(msgspec.json.encode(msgspec.structs.asdict(report) | freed))
        return
    click.echo(_describe(report, dry_run=dry_run))


def _describe(report: PruneReport, *, dry_run: bool) -> str:
    if not report.ranges:
        return f"nothing to prune: the lake begins with masterchain block {report.before}"
    blocks = ", ".join(f"{first}..{last}" for first, last in report.ranges)
    files = f"{report.files_before:,} files with {report.bytes_before:,} bytes"
    if dry_run:
        return (
            f"masterchain blocks {blocks} would be pruned: {files}, less what later blocks build on"
        )
    return (
        f"masterchain blocks {blocks} pruned by commit {report.commit}: {files} became "
        f"{report.files_after:,} with {report.bytes_after:,}; {report.bytes_freed:,} bytes freed "
        "once the old files are swept"
    )


commands: list[click.Command] = [prune_command]

"""The command ``tonlake pull``: a lake copied from another, and kept up to date with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.lake.command.argument import SOURCE, lake_option
from tonlake.lake.command.cli import (
    failing_cleanly,
    json_option,
    read_settings,
    show_progress,
)
from tonlake.lake.log.selection import Selection, select_tables
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.settings import LakeSections
from tonlake.lake.transfer.follow import follow_source
from tonlake.lake.transfer.manifest import parse_days
from tonlake.lake.transfer.pull import open_pull

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.transfer.pull import PullReport

EXAMPLES = """
Examples:

\b
  tonlake pull https://lakes.example.org/mainnet --lake mainnet.lake
  tonlake pull http://10.0.0.5:8080/lake --lake mainnet.lake --follow
  tonlake pull s3://bucket/mainnet --lake november.lake --days 2026-11-01..2026-11-30
  tonlake pull /mnt/mainnet.lake --lake few.lake --tables blocks,transactions,messages

The source is the folder of a lake: a path, object storage, or a web server, which may be tonlake
serve with [access] publish (then it ends with /lake; the setting [pull] key is its API key). Every
file is compared with its digest before it gets its name. The same command goes on where it was
stopped, and copies what is new. A copy has the commits of its source and takes no others.
"""


@click.command("pull", epilog=EXAMPLES)
@click.argument("place", metavar="SOURCE", type=SOURCE)
@lake_option
@click.option("--days", help="UTC days YYYY-MM-DD..YYYY-MM-DD, either end may be left out.")
@click.option("--tables", help="Tables, separated by commas; blocks comes with them.")
@click.option("--follow", is_flag=True, help="Go on with every commit as it comes.")
@json_option
def pull_command(
    *,
    place: Path | str,
    lake_dir: Path,
    days: str | None,
    tables: str | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Copy a lake, or some days and tables of it, from another; every byte is checked."""
    selection = _read_selection(days, tables)
    with failing_cleanly():
        settings = read_settings(LakeSections)
        if follow:
            follow_source(
                place,
                lake_dir,
                selection,
                settings,
                notify=lambda text: click.echo(f"pull: {text}", err=True),
                on_report=lambda report: _print(lake_dir, report, as_json=as_json),
            )
            return
        with (
            show_progress("files") as show,
            open_pull(place, lake_dir, selection, key=settings.pull.key, on_file=show) as puller,
        ):
            report = puller.bring()
            puller.check_newest()
        if report.commits:
            sweep_orphans(lake_dir, settings.lake.orphan_grace_s)
    _print(lake_dir, report, as_json=as_json)


def _read_selection(days: str | None, tables: str | None) -> Selection:
    try:
        span = parse_days(days or "..")
        names = None if tables is None else select_tables(_split(tables))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return Selection(span.first, span.last, names)


def _split(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _print(lake_dir: Path, report: PullReport, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    if not report.commits:
        click.echo(f"{lake_dir} has all {report.snapshot:,} commits of its source already")
        return
    lacking = report.selection.lacking
    click.echo(
        f"{lake_dir}: {report.commits:,} commit(s) up to {report.snapshot}, masterchain "
        f"{report.ranges[0][0]}..{report.ranges[-1][1]}: {report.files:,} files, "
        f"{report.rows:,} rows, {report.bytes:,} bytes, all checked"
        + (f"; without {len(lacking)} tables" if lacking else "")
    )


commands: list[click.Command] = [pull_command]

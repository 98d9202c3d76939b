"""The commands ``tonlake export`` and ``tonlake import``: move lakes between places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.ingest.derive.stages import STAGES, rebuild
from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.lake.command.argument import Folder, FolderOrURL, lake_option
from tonlake.lake.command.cli import failing_cleanly, json_option, read_settings, show_progress
from tonlake.lake.commit.delta import publish
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.reader import LogReader
from tonlake.lake.transfer.export import export_lake
from tonlake.lake.transfer.importing import import_piece
from tonlake.lake.transfer.manifest import Days, parse_days

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.log.ranges import Range

EXPORT_HELP = """
Examples:

\b
  tonlake export --lake mainnet.lake --to /mnt/disk/mainnet
  tonlake export --lake mainnet.lake --days 2026-11-01..2026-11-30 --to november
  tonlake export --lake mainnet.lake --days 2026-11-20.. --to /mnt/disk/new --json
  tonlake export --lake mainnet.lake --to s3://bucket/mainnet

The folder can be copied with any tool: its manifest names every file with its digest. The same
command resumes where it was stopped. Server, region and credentials of object storage come from
AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY.
"""

IMPORT_HELP = """
Examples:

\b
  tonlake import /mnt/disk/mainnet --lake copy.lake
  tonlake import november --lake mainnet.lake
  tonlake import s3://bucket/mainnet --lake copy.lake

The digest of every file is verified. Blocks that are already in the lake are skipped, so the same
command resumes where it was stopped. A complete lake is restored unchanged; if days are added to
others, traces and actions are derived again.
"""


class _DaysType(click.ParamType[Days]):
    name = "A..B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Days:
        """Parse the option; the default is already parsed."""
        if isinstance(value, Days):
            return value
        try:
            return parse_days(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("export", epilog=EXPORT_HELP)
@lake_option
@click.option(
    "--to",
    "place",
    type=FolderOrURL(Folder(exists=False)),
    required=True,
    help="Folder to write; created if it does not exist.",
)
@click.option(
    "--days",
    type=_DaysType(),
    default=Days(),
    help="UTC days YYYY-MM-DD..YYYY-MM-DD, either end may be left out.  [default: all]",
)
@json_option
def export_command(*, lake_dir: Path, place: Path | str, days: Days, as_json: bool) -> None:
    """Copy days of a lake into a folder or object storage, for tonlake import."""
    with failing_cleanly(), show_progress("files") as show:
        report = export_lake(lake_dir, place, days, show)
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    click.echo(
        f"{place}: masterchain {_write_ranges(report.ranges)} of snapshot {report.snapshot}"
        f"{', the whole lake' if report.whole else ''}: {report.files:,} files, "
        f"{report.rows:,} rows, {report.bytes:,} bytes; {report.copied_files:,} files were new"
    )


@click.command("import", epilog=IMPORT_HELP)
@click.argument(
    "place",
    metavar="FOLDER|s3://BUCKET/PREFIX",
    type=FolderOrURL(Folder()),
)
@lake_option
@json_option
def import_command(*, place: Path | str, lake_dir: Path, as_json: bool) -> None:
    """Add an export to a lake; the lake is created if it does not exist."""
    with failing_cleanly():
        settings = read_settings(IngestSections)
        with show_progress("files") as show:
            report = import_piece(place, lake_dir, show)
        _derive(lake_dir, settings, spanning=report.derive)
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    if not report.commits:
        click.echo("the lake already has all of it")
        return
    click.echo(
        f"{lake_dir}: masterchain {_write_ranges(report.ranges)}: {report.commits:,} commit(s), "
        f"{report.files:,} files, {report.rows:,} rows, {report.bytes:,} bytes, all checked"
        + ("; traces and actions were derived again" if report.derive else "")
    )


def _derive(lake_dir: Path, settings: IngestSections, *, spanning: bool) -> None:
    """Derive the tables that span ranges, if ``spanning``, and build the index."""
    if spanning:
        try:
            for stage in STAGES:
                if stage.spans_ranges:
                    rebuild(stage.name, lake_dir, settings)
        except IngestError as error:
            raise click.ClickException(str(error)) from error
    if settings.lake.build_index:
        rebuild_index(lake_dir)
    publish(LogReader(lake_dir), settings.lake)


def _write_ranges(ranges: tuple[Range, ...]) -> str:
    return f"{ranges[0][0]}..{ranges[-1][1]}" if ranges else "nothing"


commands: list[click.Command] = [export_command, import_command]

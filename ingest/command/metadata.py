"""The command ``tonlake fetch-metadata``: fetches off-chain token metadata."""

from pathlib import Path

import click
import msgspec

from tonlake.ingest.settings import IngestSections
from tonlake.lake.command.argument import lake_option
from tonlake.lake.command.cli import failing_cleanly, json_option, read_settings
from tonlake.lake.process import name_child


def name_fetcher(lake: Path, settings: IngestSections) -> list[str]:
    """Return the command line of a process that fetches on behalf of a server."""
    return name_child("tonlake.ingest.metadata.fetching", IngestSections, settings, lake)


@click.command("fetch-metadata")
@lake_option
@click.option("--most", type=click.IntRange(min=1), help="Most URLs to request.  [default: all]")
@click.option(
    "--again", is_flag=True, help="Also URLs that were already fetched, or failed too often."
)
@json_option
def fetch_metadata_command(*, lake_dir: Path, most: int | None, again: bool, as_json: bool) -> None:
    """Fetch off-chain token metadata into a separate table."""
    # Imported here, since no other command needs it.
    from tonlake.ingest.metadata.fetching import describe_report, fetch_metadata  # noqa: PLC0415

    with failing_cleanly():
        settings = read_settings(IngestSections)
        report = fetch_metadata(lake_dir, settings, everything=again, most=most)
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    click.echo(describe_report(report) if report.asked else "nothing is due")


commands: list[click.Command] = [fetch_metadata_command]

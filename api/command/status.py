"""The command ``tonlake status``: a lake, and how its network compares with the engines here."""

from pathlib import Path

import click
import msgspec
from rich.console import Console

from tonlake.ingest.derive.tvm.support import Versions, compare_versions, list_engines
from tonlake.ingest.settings import IngestSections
from tonlake.lake.command.argument import lake_option
from tonlake.lake.command.cli import failing_cleanly, json_option, read_settings
from tonlake.lake.command.status import read_status, render_status
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_commit


@click.command("status")
@lake_option
@json_option
def status_command(*, lake_dir: Path, as_json: bool) -> None:
    """Show what the lake holds: ranges, holes, sizes by table, the last commit."""
    with failing_cleanly():
        settings = read_settings(IngestSections)
        snapshot = open_snapshot(lake_dir, check_digests=False)
        status = read_status(snapshot, read_commit(lake_dir, snapshot.number)[0])
        versions = compare_versions(snapshot, list_engines(settings.tvm))
    if as_json:
        click.echo(msgspec.json.encode(msgspec.structs.asdict(status) | {"versions": versions}))
        return
    console = Console(highlight=False)
    render_status(status, console)
    console.print(f"Global version: {describe_versions(versions)}", markup=False, soft_wrap=True)
    for each in status.unanswered_methods:
        text = f"Unanswered: {each.method} of {each.states:,} states that may belong to "
        text += f"{each.contract_table}: {each.reason}"
        console.print(text, markup=False, soft_wrap=True)


def describe_versions(versions: Versions) -> str:
    """Describe the versions of network and engines in a sentence."""
    if versions.gap:
        return versions.gap
    network = "unknown" if versions.network is None else versions.network
    engines = ", ".join(
        f"{each.use} {'not available' if each.version is None else each.version} ({each.name})"
        for each in versions.engines
    )
    return f"network {network}; {engines}"


commands: list[click.Command] = [status_command]

"""The command ``tonlake doctor``."""

import sys
from pathlib import Path

import click
import msgspec

from tonlake.api.command.doctor.checks import (
    Finding,
    check_access,
    check_lake,
    check_machine,
    check_node,
    worst_of,
)
from tonlake.api.settings import Settings
from tonlake.ingest.command.node import NODE_VARIABLE
from tonlake.lake.command.argument import LAKE_VARIABLE
from tonlake.lake.command.cli import json_option, read_settings
from tonlake.lake.errors import LakeError

EXIT_CODES = {"ok": 0, "problem": 1, "warning": 3}
_MARKS = {"ok": "ok      ", "problem": "PROBLEM ", "warning": "warning "}

HELP = """
Examples:

\b
  tonlake doctor
  tonlake doctor --node /var/ton-work/db --lake mainnet.lake
  tonlake doctor --lake mainnet.lake --full --json

The exit code is 0 if all is well, 3 with warnings, and 1 with problems.
"""


@click.command("doctor", epilog=HELP)
@click.option(
    "--node",
    type=click.Path(path_type=Path, readable=False),
    envvar=NODE_VARIABLE,
    show_envvar=True,
    help="Database folder of a TON node.",
)
@click.option(
    "--lake",
    "lake_dir",
    type=click.Path(path_type=Path, readable=False),
    envvar=LAKE_VARIABLE,
    show_envvar=True,
    help="Folder of a lake.",
)
@click.option("--full", is_flag=True, help="Compare every file of the lake with its digest.")
@json_option
def doctor_command(*, node: Path | None, lake_dir: Path | None, full: bool, as_json: bool) -> None:
    """Check settings, machine, node and lake, and print advice; nothing is changed."""
    findings = examine(node, lake_dir, full=full)
    worst = worst_of(findings)
    if as_json:
        click.echo(msgspec.json.encode({"level": worst, "findings": findings}))
    else:
        for one in findings:
            click.echo(f"{_MARKS[one.level]} {one.subject}: {one.text}")
            if one.advice:
                click.echo(f"         -> {one.advice}")
    sys.exit(EXIT_CODES[worst])


def examine(node: Path | None, lake_dir: Path | None, *, full: bool) -> list[Finding]:
    """Return all findings: settings first, then machine, access, node and lake."""
    try:
        settings = read_settings(Settings)
    except LakeError as error:
        advice = "tonlake config lists all settings and where their values come from"
        return [Finding("settings", "problem", str(error), advice)]
    findings = [Finding("settings", "ok", "all are known and within bounds")]
    findings += [*check_machine(settings), *check_access(settings)]
    if node is not None:
        findings += check_node(node, lake_dir)
    if lake_dir is not None:
        findings += check_lake(lake_dir, settings, full=full)
    return findings


commands: list[click.Command] = [doctor_command]

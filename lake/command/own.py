"""The commands ``tonlake table``: user-defined tables, kept up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.lake.command.argument import lake_option
from tonlake.lake.command.cli import (
    EXIT_DATA,
    failing_cleanly,
    json_option,
    read_settings,
    show_progress,
)
from tonlake.lake.log.own import OwnTable, read_definitions, read_own_state
from tonlake.lake.maintenance.own import add_table, refresh_tables, remove_table
from tonlake.lake.settings import LakeSections

if TYPE_CHECKING:
    from tonlake.lake.log.own import OwnState, Per

EXAMPLES = """
Examples:

\b
  tonlake table add daily_fees fees.sql --per day --lake mainnet.lake
  tonlake table list --lake mainnet.lake
  tonlake table refresh daily_fees --lake mainnet.lake
  tonlake table remove daily_fees --lake mainnet.lake
"""


@click.group("table", epilog=EXAMPLES)
def table_group() -> None:
    """Keep the result of a statement as a table of the lake, up to date."""


@table_group.command("add", epilog=EXAMPLES)
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--per",
    type=click.Choice(["day", "commit"]),
    required=True,
    help="Whether the statement runs over the rows of each UTC day, or of each commit.",
)
@lake_option
def add_command(*, name: str, file: Path, per: Per, lake_dir: Path) -> None:
    """Add a table with the rows of the statement in FILE, and fill it."""
    with failing_cleanly(), show_progress("files") as show:
        settings = read_settings(LakeSections).lake
        statement = file.read_text(encoding="utf-8", errors="replace")
        state = add_table(lake_dir, OwnTable(name, statement, per), settings, show)
    click.echo(_describe(name, state))


@table_group.command("list", epilog=EXAMPLES)
@lake_option
@json_option
def list_command(*, lake_dir: Path, as_json: bool) -> None:
    """List the tables: rows, the commit they are up to date with, and errors."""
    with failing_cleanly():
        tables = read_definitions(lake_dir).values()
        found = {table: read_own_state(lake_dir, table.name) for table in tables}
    if as_json:
        listed = [
            {
                **msgspec.to_builtins(table),
                "columns": state.columns,
                "rows": state.rows,
                "commit": state.commit,
                "error": state.error,
            }
            for table, state in found.items()
        ]
        click.echo(msgspec.json.encode(listed))
        return
    for table, state in found.items():
        click.echo(f"{_describe(table.name, state)} (per {table.per})")


@table_group.command("refresh", epilog=EXAMPLES)
@click.argument("name", required=False)
@lake_option
def refresh_command(*, name: str | None, lake_dir: Path) -> None:
    """Refresh a table, or all of them; exit 1 if one fails."""
    with failing_cleanly(), show_progress("files") as show:
        found = refresh_tables(lake_dir, read_settings(LakeSections).lake, name, show)
    for each, state in found.items():
        click.echo(_describe(each, state))
    if any(state.error for state in found.values()):
        sys.exit(EXIT_DATA)


@table_group.command("remove", epilog=EXAMPLES)
@click.argument("name")
@lake_option
def remove_command(*, name: str, lake_dir: Path) -> None:
    """Remove a table and its files."""
    with failing_cleanly():
        remove_table(lake_dir, name)
    click.echo(f"{name}: removed")


def _describe(name: str, state: OwnState) -> str:
    text = f"{name}: {state.rows:,} rows in {len(state.parts):,} files, commit {state.commit}"
    return f"{text}; failed at commit {state.failed}: {state.error}" if state.error else text


commands: list[click.Command] = [table_group]

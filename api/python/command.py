"""The command ``tonlake sql``."""

from contextlib import nullcontext
from pathlib import Path

import click
from duckdb import DuckDBPyConnection

from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.body.signature import MAX_CHARACTERS
from tonlake.ingest.errors import SignatureInvalid
from tonlake.lake.command.argument import (
    StatementCommand,
    choose_output,
    format_option,
    output_option,
    place_option,
    read_statement,
    snapshot_option,
)
from tonlake.lake.command.cli import failing_cleanly, read_settings, write_answer
from tonlake.lake.duck.answer import ask, naming_the_fault
from tonlake.lake.duck.body_table import add_tables, name_views
from tonlake.lake.duck.remote import open_to_ask
from tonlake.lake.duck.silence import list_notes
from tonlake.lake.log.disk import unfinished
from tonlake.lake.settings import LakeSections

HELP = "TL-B, an ABI (Tact, Tolk) or a built-in layout by name; messages that match are a table."


def read_signature(text: str) -> str:
    """Return a signature; for ``@FILE`` the content of the file. Raises UsageError."""
    if not text.startswith("@"):
        return text
    try:
        with Path(text[1:]).open(encoding="utf-8") as stream:
            return stream.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise click.UsageError(f"--signature {text}: {reason}") from error


@click.command("sql", cls=StatementCommand)
@click.argument("query", callback=read_statement)
@place_option
@click.option(
    "--signature",
    "signatures",
    multiple=True,
    metavar="TEXT|@FILE",
    help=f"{HELP} May be repeated.",
)
@format_option
@output_option
@snapshot_option
def sql_command(
    *,
    query: str,
    place: Path | str,
    signatures: tuple[str, ...],
    output_format: str,
    output: Path | None,
    snapshot: int | None,
) -> None:
    """Run one read-only SQL statement (DuckDB)."""
    output = choose_output(output, output_format)
    try:
        tables = read_tables(map(read_signature, signatures))
    except SignatureInvalid as error:
        raise click.UsageError(f"--signature: {error}") from error
    with failing_cleanly():
        settings = read_settings(LakeSections).lake
        views = name_views(query, tables)
        with (
            open_to_ask(place, snapshot, settings, views) as (opened, connection),
            unfinished(output) if output else nullcontext() as path,
        ):
            misfits = add_tables(connection, tables)
            if "get_method_history" in query.lower():
                _add_history(connection, place, opened.number)
            with naming_the_fault(opened):
                write_answer(ask(connection, opened, query), output_format, path)
            notes = list_notes(opened, query)
    for note in (*notes, *misfits.warnings()):
        click.echo(note, err=True)


def _add_history(connection: DuckDBPyConnection, place: Path | str, number: int) -> None:
    # Few statements call it, and the modules of the API take half a second.
    from tonlake.api.python.history import add_history  # noqa: PLC0415
    from tonlake.api.python.source import LakeSource  # noqa: PLC0415
    from tonlake.api.settings import Settings  # noqa: PLC0415

    add_history(connection, LakeSource(place, read_settings(Settings)).open(number))


commands = [sql_command]

"""The command ``tonlake scan``: writes rows of tables in chain order to a file or stdout."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import click

from tonlake.api.errors import ApiError
from tonlake.api.python.command import HELP, read_signature
from tonlake.api.python.result import ScanBatch, scan_batches
from tonlake.api.python.source import LakeSource
from tonlake.api.scan.frames import FRAMES, MARKED, SCAN_TYPES, BatchMark, Frames
from tonlake.api.scan.opening import make_source
from tonlake.api.scan.query import convert_scan
from tonlake.api.settings import Settings
from tonlake.lake.command.argument import output_option, place_option, read_pairs
from tonlake.lake.command.cli import failing_cleanly, read_settings
from tonlake.lake.duck.body_table import Misfits
from tonlake.lake.log.disk import unfinished


@click.command("scan")
@click.argument("tables", nargs=-1, required=True, metavar="TABLE…")
@place_option
@click.option(
    "--where", multiple=True, metavar="COLUMN=VALUE,…", help="Values of a column; may be repeated."
)
@click.option("--columns", metavar="NAME,…", help="Columns, by default all of the table.")
@click.option("--signature", metavar="TEXT|@FILE", help=HELP)
@click.option("--from", "start", help="First block: seqno, time (ISO 8601), or snapshot:N.")
@click.option("--to", "stop", help="Last block, likewise; by default the newest.")
@click.option("--cursor", help="Continue after the batch with this cursor.")
@click.option("--limit", type=click.IntRange(min=1), help="End with the block of this row.")
@click.option("--follow", is_flag=True, help="Continue with new blocks as they arrive.")
@click.option(
    "--format",
    "form",
    type=click.Choice([*SCAN_TYPES]),
    default="ndjson",
    show_default=True,
    help="Format of the rows; NDJSON and Arrow have a cursor after every batch.",
)
@output_option
def scan_command(
    *,
    tables: tuple[str, ...],
    place: Path | str,
    where: tuple[str, ...],
    columns: str | None,
    signature: str | None,
    form: str,
    output: Path | None,
    **options: Any,  # noqa: ANN401 - of various types
) -> None:
    """Print rows of tables in chain order; --cursor continues an earlier scan."""
    if options["follow"] and form not in MARKED:
        raise click.UsageError(f"--follow needs --format {' or '.join(sorted(MARKED))}")
    filters = {name: text.split(",") for name, text in read_pairs(where, "--where").items()}
    with failing_cleanly(ApiError):
        options["signature"] = signature and read_signature(signature)
        if len(tables) == 1:
            options |= {"where": filters, "columns": _split(columns)}
            scan = convert_scan(tables[0], options)
        else:
            scan = convert_scan(_divide(tables, filters, _split(columns)), options)
        settings = read_settings(Settings)
        frames = FRAMES[form](make_source(scan, settings.lake).schema)
        opened = LakeSource(place, settings).open()
        with (
            unfinished(output.absolute()) if output else nullcontext() as path,
            path.open("wb") if path else nullcontext(sys.stdout.buffer) as stream,
        ):
            _write(scan_batches(opened, scan), frames, stream)


def _split(columns: str | None) -> list[str]:
    return [name.strip() for name in (columns or "").split(",") if name.strip()]


def _divide(
    tables: tuple[str, ...], filters: dict[str, list[str]], columns: list[str]
) -> dict[str, dict[str, Any]]:
    """Group filters and columns by the table in their prefix; UsageError for another prefix."""
    found: dict[str, dict[str, Any]] = {table: {"where": {}, "columns": []} for table in tables}
    for name in (*filters, *columns):
        if name.partition(".")[0] not in found:
            raise click.UsageError(f"{name}: with several tables, use TABLE.COLUMN")
    for name, values in filters.items():
        table, _, column = name.partition(".")
        found[table]["where"][column] = values
    for name in columns:
        table, _, column = name.partition(".")
        found[table]["columns"].append(column)
    return found


def _write(batches: Iterator[ScanBatch], frames: Frames, stream: IO[bytes]) -> None:
    """Write all batches; print the last cursor and warnings about bodies that do not match."""
    stream.write(frames.begin())
    cursor, misfits = None, Misfits()
    try:
        for batch in batches:
            mark = BatchMark(batch.cursor, batch.height, batch.undone, dict(batch.misfits))
            stream.write(frames.write(batch.rows.arrow(), mark))
            stream.flush()
            cursor = batch.cursor
            misfits.update(batch.misfits)
    except KeyboardInterrupt:
        pass  # the usual end of a following scan
    stream.write(frames.end())
    stream.flush()
    if cursor is not None:
        click.echo(f"cursor: {cursor}", err=True)
    for warning in misfits.warnings():
        click.echo(f"warning: {warning}", err=True)


commands: list[click.Command] = [scan_command]

"""Commands on an existing lake (verify, views, rebuild), and ``tonlake schema``."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tonlake.lake.command.argument import (
    Folder,
    lake_option,
)
from tonlake.lake.command.dictionary import render_dbt, render_json, render_markdown
from tonlake.lake.command.status import (
    describe_outdated,
    read_index_status,
)
from tonlake.lake.commit.delta import publish, remove_logs
from tonlake.lake.duck.answer import (
    TABLE_ROWS,
    TEXT_WRITERS,
    naming_the_fault,
    write_parquet,
    write_table,
)
from tonlake.lake.duck.own import list_own_tables
from tonlake.lake.duck.views import write_views
from tonlake.lake.errors import LakeError, advise
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.log.state import Commit

EXIT_DATA = 1
S = TypeVar("S", bound=LakeSections)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def read_settings(kind: type[S]) -> S:
    """Return the settings of the running command, limited to the sections that it reads.

    click's context object is the function that loads them, as a struct derived from ``kind``.

    Raises:
        SettingsError: an unknown name or a bad value.
    """
    settings = click.get_current_context().obj()
    if not isinstance(settings, kind):
        raise TypeError(f"{type(settings).__name__} is not composed of {kind.__name__}")
    return settings


@contextmanager
def failing_cleanly() -> Iterator[None]:
    """Print an error in one line, and exit with the code of a data problem."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has closed the pipe, which is not an error
    except (LakeError, OSError) as error:
        click.echo(f"error: {describe_error(error)}", err=True)
        sys.exit(EXIT_DATA)


def describe_error(error: Exception) -> str:
    """Return the text of an error; an OS error begins with its file and ends with advice."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        advice = advise(error)
        return place + error.strerror + (f"; {advice}" if advice else "")
    return str(error)


@click.command("verify", epilog="Example: tonlake verify --lake mainnet.lake")
@lake_option
@json_option
@click.option(
    "--sweep", is_flag=True, help="Remove old files that the newest snapshot does not use."
)
def verify_command(*, lake_dir: Path, as_json: bool, sweep: bool) -> None:
    """Verify all digests and the log; exit 1 on any damage."""
    with failing_cleanly(), show_progress("files") as show:
        settings = read_settings(LakeSections).lake
        swept = sweep_orphans(lake_dir, settings.orphan_grace_s) if sweep else []
        report = verify_lake(lake_dir, show)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        for path in swept:
            click.echo(f"removed: {path.relative_to(lake_dir)}")
        for orphan in report.orphans:
            click.echo(f"unused: {orphan}")
        for damage in report.damage:
            click.echo(f"damaged: {damage.file}: {damage.reason}")
        if report.orphans:
            click.echo(
                f"unused by the newest snapshot: {len(report.orphans):,} files; "
                f"--sweep removes those older than {settings.orphan_grace_s:,} s"
            )
        click.echo(
            f"{report.commits:,} commits, {report.files:,} files, {report.rows:,} rows, "
            f"{report.bytes:,} bytes: {len(report.damage) or 'none'} damaged"
        )
        if report.reported:
            ranges = ", ".join(f"{first}..{last}" for first, last in report.reported)
            click.echo(
                f"masterchain blocks {ranges} are as the public data set reports them: no block"
                " proves their rows"
            )
    if report.damage:
        sys.exit(EXIT_DATA)


@contextmanager
def show_progress(noun: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar if stderr is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn(noun), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(noun, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def write_answer(
    snapshot: Snapshot, batches: pa.RecordBatchReader, output_format: str, path: Path | None
) -> None:
    """Write rows as a table, CSV, JSON or Parquet to a file, or to stdout.

    Raises:
        QueryError, LakeCorrupt: reading the rows fails.
    """
    with naming_the_fault(snapshot):
        if output_format == "parquet":
            with path.open("wb") if path else nullcontext(sys.stdout.buffer) as stream:
                write_parquet(batches, stream)
            return
        with path.open("w", encoding="utf-8") if path else nullcontext(sys.stdout) as text:
            if output_format != "table":
                TEXT_WRITERS[output_format](batches, text)
                return
            count = write_table(batches, text, TABLE_ROWS)
    if count > TABLE_ROWS:
        shown = f"{TABLE_ROWS:,} of {count:,} rows"
        click.echo(f"{shown} shown; --format csv or json writes all", err=True)


@click.command("views", epilog="Example: tonlake views --lake mainnet.lake")
@lake_option
@click.option("--root", help="Path of the lake as readers see it, if it differs.")
def views_command(*, lake_dir: Path, root: str | None) -> None:
    """Write views.sql and catalog.duckdb of the newest snapshot, for DuckDB and other tools."""
    with failing_cleanly():
        settings = read_settings(LakeSections).lake
        for path in write_views(lake_dir, root, settings):
            click.echo(str(path))


SCHEMA_EXAMPLES = """
Examples:

\b
  tonlake schema --markdown > tables.md
  tonlake schema --dbt --lake mainnet.lake > models/tonlake_sources.yml
"""


@click.command("schema", epilog=SCHEMA_EXAMPLES)
@click.option(
    "--markdown",
    "output_format",
    flag_value="markdown",
    default=True,
    help="Print Markdown (the default).",
)
@click.option("--json", "output_format", flag_value="json", help="Print JSON for machines.")
@click.option(
    "--dbt",
    "output_format",
    flag_value="dbt",
    help="Print a dbt source file for the views of catalog.duckdb.",
)
@click.option(
    "--lake",
    "lake_dir",
    type=Folder(),
    help="Add the user-defined tables of this lake.",
)
def schema_command(*, output_format: str, lake_dir: Path | None) -> None:
    """Print the data dictionary: every table and column."""
    writers = {"json": render_json, "dbt": render_dbt, "markdown": render_markdown}
    with failing_cleanly():
        own = [] if lake_dir is None else list_own_tables(lake_dir)
    click.echo(writers[output_format](own))


def report_rebuilt(lake_dir: Path, commit: Commit | None, noun: str, tables: Iterable[str]) -> None:
    """Print the rows that a rebuild committed, and the index segments it made outdated."""
    if commit is None:
        click.echo(f"nothing differs from the existing {noun}")
        return
    rows = {name: sum(file.rows for file in commit.added if file.table == name) for name in tables}
    counts = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    click.echo(
        f"commit {commit.number}: {len(commit.added)} files" + (f" with {counts}" if counts else "")
    )
    if outdated := read_index_status(open_snapshot(lake_dir, check_digests=False)).outdated:
        click.echo(f"index: {describe_outdated(outdated)}")


@click.group("rebuild", epilog="Example: tonlake rebuild index --lake mainnet.lake")
def rebuild_group() -> None:
    """Recompute what is derived from the lake's rows."""


@rebuild_group.command("index", epilog="Example: tonlake rebuild index --lake mainnet.lake")
@lake_option
@click.option("--all", "everything", is_flag=True, help="Rebuild existing segments, too.")
def rebuild_index_command(*, lake_dir: Path, everything: bool) -> None:
    """Index the blocks that have no index yet; the lake stays readable meanwhile."""
    with failing_cleanly():
        commit = rebuild_index(lake_dir, everything=everything)
    if commit is None or commit.segments is None:
        click.echo("every block is already indexed")
        return
    rows, size = (
        sum(getattr(segment, name) for segment in commit.segments) for name in ("rows", "bytes")
    )
    click.echo(f"{len(commit.segments)} segments, {rows:,} transactions, {size:,} bytes")


@rebuild_group.command("delta", epilog="Example: tonlake rebuild delta --lake mainnet.lake")
@lake_option
def rebuild_delta_command(*, lake_dir: Path) -> None:
    """Write the Delta logs of all tables again, from version 0."""
    with failing_cleanly():
        log, settings = LogReader(lake_dir), read_settings(LakeSections).lake
        log.find()
        remove_logs(lake_dir)
        publish(log, settings)
    click.echo(f"Delta logs: {'version 0 of every table' if settings.delta else 'removed'}")


@rebuild_group.command("lookups", hidden=True)
@click.argument("_rest", nargs=-1, type=click.UNPROCESSED)
def rebuild_lookups_command(*, _rest: tuple[str, ...]) -> None:
    """Reject the old name of ``rebuild index``."""
    raise click.UsageError("`rebuild lookups` is now `rebuild index`")


commands: list[click.Command] = [
    rebuild_group,
    verify_command,
    views_command,
    schema_command,
]

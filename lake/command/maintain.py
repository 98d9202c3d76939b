"""Commands on an existing lake; ``tonlake schema``: the data dictionary, also as a dbt source."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec

from tonlake.lake.command.argument import Folder, lake_option
from tonlake.lake.command.cli import (
    EXIT_DATA,
    count_noun,
    failing_cleanly,
    fill_template,
    json_option,
    read_settings,
    show_progress,
)
from tonlake.lake.command.status import describe_outdated, read_index_status
from tonlake.lake.commit.commit import is_day
from tonlake.lake.commit.delta import publish, remove_logs
from tonlake.lake.duck.connection import VIEWED_TABLES, read_bases
from tonlake.lake.duck.own import (
    OwnState,
    OwnTable,
    Per,
    describe_own_tables,
    list_own_tables,
    read_definitions,
    read_own_state,
)
from tonlake.lake.duck.views import write_views
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import Commit, LogReader, read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.own import add_table, refresh_tables, remove_table
from tonlake.lake.maintenance.removal import PruneReport, prune_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.schema import SCHEMA_VERSION, TABLES
from tonlake.lake.schema.dictionary import REFERENCE_TABLES, VIEWS
from tonlake.lake.settings import LakeSections

ORPHANS_SHOWN = 20
"""Unused files that ``verify`` lists as text; ``--json`` has all."""


@click.command("verify")
@lake_option
@json_option
@click.option(
    "--sweep", is_flag=True, help="Remove old files that the newest snapshot does not use."
)
def verify_command(*, lake_dir: Path, as_json: bool, sweep: bool) -> None:
    """Verify all digests and the log; exit 1 on any damage."""
    with failing_cleanly(), show_progress("files") as show:
        settings = read_settings(LakeSections).lake
        swept = sweep_orphans(lake_dir, settings) if sweep else []
        report = verify_lake(lake_dir, show)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        for path in swept:
            click.echo(f"removed: {path.relative_to(lake_dir)}")
        for orphan in report.orphans[:ORPHANS_SHOWN]:
            click.echo(f"unused: {orphan}")
        for damage in report.damage:
            click.echo(f"damaged: {damage.file}: {damage.reason}")
        if report.orphans:
            click.echo(
                f"unused by the newest snapshot: {count_noun(len(report.orphans), 'file')}; "
                f"--sweep removes those older than {settings.orphan_grace_s:,} s"
            )
        click.echo(
            f"{count_noun(report.commits, 'commit')}, {count_noun(report.files, 'file')}, "
            f"{report.rows:,} rows, {report.bytes:,} bytes: {len(report.damage) or 'none'} damaged"
        )
        if report.reported:
            ranges = ", ".join(f"{first}..{last}" for first, last in report.reported)
            click.echo(
                f"masterchain blocks {ranges} are as the public data set reports them: no block"
                " proves their rows"
            )
    if report.damage:
        sys.exit(EXIT_DATA)


@click.command("views")
@lake_option
@click.option("--root", help="Path of the lake as readers see it, if it differs.")
def views_command(*, lake_dir: Path, root: str | None) -> None:
    """Write views.sql and catalog.duckdb of the newest snapshot, for DuckDB and other tools."""
    with failing_cleanly():
        settings = read_settings(LakeSections).lake
        if any(file.pack for file in read_state(lake_dir).files):
            compact_lake(lake_dir, settings, depth="packs")
        for path in write_views(lake_dir, root, settings):
            click.echo(str(path))


@click.command("schema")
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
@click.option("--lake", "lake_dir", type=Folder(), help="Add the user-defined tables of this lake.")
def schema_command(*, output_format: str, lake_dir: Path | None) -> None:
    """Print the data dictionary: every table and column."""
    writers = {"json": render_json, "dbt": render_dbt, "markdown": render_markdown}
    with failing_cleanly():
        if lake_dir is not None:
            read_state(lake_dir)  # refuses a folder without a lake
        own = [] if lake_dir is None else list_own_tables(lake_dir)
    click.echo(writers[output_format](own))


def report_rebuilt(lake_dir: Path, commit: Commit | None, noun: str, tables: Iterable[str]) -> None:
    """Print the rows that a rebuild committed, and the index segments it made outdated."""
    if commit is None:
        click.echo(f"nothing differs from the existing {noun}")
        return
    rows = {name: sum(file.rows for file in commit.added if file.table == name) for name in tables}
    counts = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    files = count_noun(len(commit.added), "file")
    click.echo(f"commit {commit.number}: {files}" + (f" with {counts}" if counts else ""))
    if outdated := read_index_status(open_snapshot(lake_dir, check_digests=False)).outdated:
        click.echo(f"index: {describe_outdated(outdated)}")


@click.command("index")
@lake_option
@click.option("--all", "everything", is_flag=True, help="Rebuild existing segments, too.")
def rebuild_index_command(*, lake_dir: Path, everything: bool) -> None:
    """Index the blocks that have no index yet; the lake stays readable meanwhile."""
    with failing_cleanly():
        commit = rebuild_index(lake_dir, everything=everything)
    if commit is None or commit.segments is None:
        click.echo("every block is already indexed")
        return
    rows = sum(segment.rows for segment in commit.segments)
    size = sum(segment.bytes for segment in commit.segments)
    segments = count_noun(len(commit.segments), "segment")
    click.echo(f"{segments}, {rows:,} transactions, {size:,} bytes")


@click.command("delta")
@lake_option
def rebuild_delta_command(*, lake_dir: Path) -> None:
    """Write the Delta logs of all tables again, from version 0."""
    with failing_cleanly():
        log, settings = LogReader(lake_dir), read_settings(LakeSections).lake
        log.find()
        remove_logs(lake_dir)
        publish(log, settings)
    click.echo(f"Delta logs: {'version 0 of every table' if settings.delta else 'removed'}")


@click.command("compact")
@lake_option
@json_option
def compact_command(*, lake_dir: Path, as_json: bool) -> None:
    """Merge small files into large ones, day by day; rows and index do not change."""
    with failing_cleanly(), show_progress("files") as show:
        settings = read_settings(LakeSections).lake
        report = compact_lake(lake_dir, settings, on_files=show)
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    if not report.commits:
        click.echo("nothing to merge")
        return
    click.echo(
        f"{report.files_before:,} files with {report.bytes_before:,} bytes became "
        f"{report.files_after:,} with {report.bytes_after:,}, "
        f"in {count_noun(report.commits, 'commit')}"
    )


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


@click.command("prune")
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
    click.echo(_describe_prune(report, dry_run=dry_run))


def _describe_prune(report: PruneReport, *, dry_run: bool) -> str:
    if not report.ranges:
        return f"nothing to prune: the lake begins with masterchain block {report.before}"
    ranges = ", ".join(f"{first}..{last}" for first, last in report.ranges)
    blocks = f"masterchain blocks {ranges}"
    files = f"{count_noun(report.files_before, 'file')} with {report.bytes_before:,} bytes"
    if dry_run:
        return f"{blocks} would be pruned: {files}, less what later blocks build on"
    return (
        f"{blocks} pruned by commit {report.commit}: {files} became "
        f"{report.files_after:,} with {report.bytes_after:,}; {report.bytes_freed:,} bytes freed "
        "once the old files are swept"
    )


@click.group("table")
def table_group() -> None:
    """Keep the result of a statement as a table of the lake, up to date."""


@table_group.command("add")
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
    click.echo(_describe_table(name, state))


@table_group.command("list")
@lake_option
@json_option
def list_command(*, lake_dir: Path, as_json: bool) -> None:
    """List the tables: rows, the commit they are up to date with, and errors."""
    with failing_cleanly():
        read_state(lake_dir)
        if as_json:
            click.echo(msgspec.json.encode(describe_own_tables(lake_dir)))
            return
        for table in read_definitions(lake_dir).values():
            text = _describe_table(table.name, read_own_state(lake_dir, table.name))
            click.echo(f"{text} (per {table.per})")


@table_group.command("refresh")
@click.argument("name", required=False)
@lake_option
def refresh_command(*, name: str | None, lake_dir: Path) -> None:
    """Refresh a table, or all of them; exit 1 if one fails."""
    with failing_cleanly(), show_progress("files") as show:
        found = refresh_tables(lake_dir, read_settings(LakeSections).lake, name, show)
    for each, state in found.items():
        click.echo(_describe_table(each, state))
    if any(state.error for state in found.values()):
        sys.exit(EXIT_DATA)


@table_group.command("remove")
@click.argument("name")
@lake_option
def remove_command(*, name: str, lake_dir: Path) -> None:
    """Remove a table and its files."""
    with failing_cleanly():
        remove_table(lake_dir, name, read_settings(LakeSections).lake)
    click.echo(f"{name}: removed")


def _describe_table(name: str, state: OwnState) -> str:
    text = f"{name}: {state.rows:,} rows in {len(state.parts):,} files, commit {state.commit}"
    return f"{text}; failed at commit {state.failed}: {state.error}" if state.error else text


commands: list[click.Command] = [
    *(verify_command, views_command, schema_command),
    *(compact_command, prune_command, table_group),
]


OwnTables = Sequence[tuple[OwnTable, OwnState]]


def render_markdown(own: OwnTables = ()) -> str:
    """Return the data dictionary as Markdown, a section per table, user-defined tables last."""
    return fill_template(
        "tonlake.lake.command",
        "dictionary.txt",
        version=SCHEMA_VERSION,
        tables=TABLES.values(),
        views=(*VIEWS.values(), *REFERENCE_TABLES),
        own=own,
        describe=describe_own,
    )


def describe_own(table: OwnTable) -> str:
    """Describe a user-defined table in a sentence."""
    return f"User-defined table: a statement run over the rows of each {table.per}."


def render_json(own: OwnTables = ()) -> str:
    """Return the schema as JSON: version, tables with key, order and columns, and views."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tables": list(TABLES.values()),
        "views": [
            msgspec.to_builtins(view) | {"bases": read_bases(view.name)}
            for view in (*VIEWS.values(), *REFERENCE_TABLES)
        ],
        "own_tables": [
            {**msgspec.to_builtins(table), "columns": state.columns} for table, state in own
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode()


SOURCE = "tonlake"


def render_dbt(own: OwnTables = ()) -> str:
    """Return the source file as YAML: each view with its columns, their tests, and freshness."""
    views = [(view, table.doc, table.shown) for view, table in VIEWED_TABLES.items()]
    views += [(view.name, view.doc, view.columns) for view in VIEWS.values() if not view.parameters]
    return fill_template(
        "tonlake.lake.command",
        "dbt.txt",
        source=SOURCE,
        shown=views,
        own=own,
        describe=describe_own,
    )

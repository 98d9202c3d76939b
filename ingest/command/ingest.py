"""The commands ``tonlake ingest`` and ``tonlake ingest-state``.

The first decodes blocks, or rows of the public data set, to a lake; the second adds all accounts as
of the beginning of a lake.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.command.node import choose_folder, keep_apart, node_option, required_node_option
from tonlake.ingest.decode import native
from tonlake.ingest.errors import IngestError
from tonlake.ingest.run.baseline import (
    BaselineProgress,
    BaselineReport,
    ingest_state,
    lacks_baseline,
)
from tonlake.ingest.run.pipeline import Indexing, IngestReport, Progress, ingest
from tonlake.ingest.run.workers import count_workers, start_workers
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.celldb import NAME as CELLDB
from tonlake.ingest.source.node.celldb import open_celldb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import CellDbStates, StateFiles, StateStore
from tonlake.ingest.source.origin import Origin
from tonlake.ingest.span import Span, SpanError, parse_span
from tonlake.lake.command.argument import Folder, FolderOrURL, make_lake_option
from tonlake.lake.command.cli import count_noun, failing_cleanly, progress_bar, read_settings
from tonlake.lake.commit.delta import publish
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.state import LOG_FOLDER, LogReader
from tonlake.lake.maintenance.orphan import sweep_orphans

if TYPE_CHECKING:
    from tonlake.ingest.dataset.pipeline import DayReport


def _print_day(report: "DayReport", *, as_json: bool) -> bool:
    """Print the report of a day; return whether the day is complete."""
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    elif report.ingest is not None:
        click.echo(f"{report.day}:")
        print_report(report.ingest, as_json=False)
    else:
        what = ", ".join(report.lacking) or "masterchain block"
        click.echo(f"{report.day}: the data set has no {what} of this day", err=True)
    return report.ingest is not None and not report.ingest.holes


EXIT_PARTIAL = 3
HOLES_SHOWN = 20
File = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("ingest")
@node_option
@click.option("--packs", type=Folder(), help="Folder of archive packages, without a node.")
@click.option(
    "--liteserver", type=File, help="Configuration of a network: blocks from its servers."
)
@click.option(
    "--dataset",
    type=FolderOrURL(Folder(), web=True),
    help="Public data set of the chain (Parquet): a folder, s3:// or https://; with --days.",
)
@click.option("--days", help="UTC days of the data set, such as 2026-11-01..2026-11-03.")
@make_lake_option("lake")
@click.option("--range", "span", help="Masterchain blocks, such as 1000:2000 or -1000:.")
@click.option("--from", "first", type=click.IntRange(min=1), help="First masterchain block.")
@click.option("--to", "last", type=click.IntRange(min=1), help="Last masterchain block.")
@click.option(
    "--state",
    is_flag=True,
    help="Also read the accounts that these blocks do not touch, like ingest-state.",
)
@click.option("--follow", is_flag=True, help="Continue with the blocks that a running node writes.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that decode; 1: only the main one. Default: one per core for many blocks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def ingest_command(  # noqa: PLR0913 - one for each option
    *,
    node: Path | None,
    packs: Path | None,
    liteserver: Path | None,
    dataset: Path | str | None,
    days: str | None,
    lake: Path,
    span: str | None,
    first: int | None,
    last: int | None,
    workers: int | None,
    follow: bool,
    state: bool,
    as_json: bool,
) -> None:
    """Decode a node's blocks into the lake; the node's folder is never written.

    Without a node, blocks come from the lite servers in a network's configuration file.
    """
    node = choose_folder(node, elsewhere=any((packs, liteserver, dataset)))
    _check_source([node, packs, liteserver, dataset], state=state)
    if (dataset is None) != (days is None):
        raise click.UsageError("--dataset needs --days, and --days needs --dataset")
    if dataset is not None and any((span, first, last, workers, follow)):
        raise click.UsageError("--dataset takes no ranges of blocks and no workers")
    keep_apart(lake, node, packs)
    range_text = _join_range(span, first, last, follow=follow)
    origin = Origin(node, packs, liteserver)
    with failing_cleanly(IngestError):
        settings = read_settings(IngestSections)
        if dataset is not None and days is not None:
            _bring_dataset(dataset, days, lake, settings, as_json=as_json)
            return
        if follow and range_text == ":" and not state:
            _follow(origin, lake, settings, as_json=as_json, reminds=True)
        with closing(origin.open(settings)) as source:
            report = _run(origin, source, lake, range_text, settings, workers)
        print_report(report, as_json=as_json)
        _complete(node, lake, bring=state, workers=workers, as_json=as_json)
        if follow:
            _follow(origin, lake, settings, as_json=as_json, reminds=False)
    if report.holes or report.stopped_at is not None:
        sys.exit(EXIT_PARTIAL)


def _bring_dataset(
    place: Path | str, days: str, lake: Path, settings: IngestSections, *, as_json: bool
) -> None:
    # DuckDB's and pyarrow's compute take 0.2 s to load.
    from tonlake.ingest.dataset.files import DataSet, list_days  # noqa: PLC0415
    from tonlake.ingest.dataset.pipeline import ingest_days  # noqa: PLC0415

    try:
        chosen = list_days(days)
    except ValueError as error:
        raise click.UsageError(f"--days {error}") from error
    sweep_orphans(lake, settings.lake)
    with show_blocks() as show, closing(DataSet(place)) as found:
        reports = ingest_days(found, chosen, lake, settings, on_progress=show)
        are_whole = [_print_day(report, as_json=as_json) for report in reports]
    log = LogReader(lake)
    if log.read().number:
        if settings.lake.build_index:
            rebuild_index(lake)
        publish(log, settings.lake)
    if not all(are_whole):
        sys.exit(EXIT_PARTIAL)


def _check_source(named: list[Path | str | None], *, state: bool) -> None:
    if named.count(None) != len(named) - 1:
        raise click.UsageError(
            "name one source: --node DIR, --packs DIR, --liteserver FILE or --dataset URL"
        )
    if state and named[0] is None:
        raise click.UsageError("--state reads the state of a node: name it with --node DIR")


def _join_range(span: str | None, first: int | None, last: int | None, *, follow: bool) -> str:
    if span is not None and (first is not None or last is not None):
        raise click.UsageError("--range already has both ends: leave out --from and --to")
    if follow and (last is not None or (span is not None and not span.endswith(":"))):
        raise click.UsageError("--follow has no last block: end the range with a colon")
    return span or f"{first if first is not None else ''}:{last if last is not None else ''}"


def read_range(source: BlockSource, text: str) -> Span:
    """Return the blocks of a source that ``text`` names, ``:`` all of it; or raise UsageError."""
    oldest, newest = source.first_mc_seqno(), source.last_mc_seqno()
    if text == ":":
        return Span(oldest, newest)
    try:
        return parse_span(text, oldest=oldest, newest=newest)
    except SpanError as error:
        raise click.UsageError(str(error)) from error


def _run(
    origin: Origin,
    source: BlockSource,
    lake: Path,
    range_text: str,
    settings: IngestSections,
    workers: int | None,
) -> IngestReport:
    span = read_range(source, range_text)
    count = workers or count_workers(span)
    sweep_orphans(lake, settings.lake)
    with show_blocks() as show, start_workers(origin, lake, settings, count) as builders:
        indexing = Indexing(lake, settings.ingest, builders)

        def on_progress(progress: Progress) -> None:
            show(progress)
            if settings.lake.build_index:
                indexing.advance()

        with start_workers(origin, lake, settings, count) as processes:
            report = ingest(source, lake, span, settings, on_progress, workers=processes)
        if settings.lake.build_index and LogReader(lake).read().number:
            indexing.finish()  # also of commits whose index an earlier run could not write
        return report


def _complete(
    node: Path | None, lake: Path, *, bring: bool, workers: int | None = None, as_json: bool
) -> None:
    """Add the baseline of a lake that begins after block 1, or print that it is missing."""
    state = LogReader(lake).read()
    if node is None or not state.ranges or state.known_ranges[0][0] == 1:
        return
    if bring:
        _bring_baseline(node, lake, workers=workers, as_json=as_json)
    elif lacks_baseline(state):
        click.echo(
            f"the lake begins with masterchain {state.known_ranges[0][0]}: accounts that its blocks"
            f" do not touch are unknown; `tonlake ingest-state --node {node} --lake {lake}` adds"
            " them",
            err=True,
        )


def _follow(
    origin: Origin, lake: Path, settings: IngestSections, *, as_json: bool, reminds: bool
) -> None:
    """Ingest every new masterchain block until the process is interrupted."""
    from tonlake.ingest.run.follow import keep_following  # noqa: PLC0415 - imports DuckDB

    def show(report: IngestReport) -> None:
        nonlocal reminds
        print_report(report, as_json=as_json)
        if reminds:
            reminds = False
            _complete(origin.node, lake, bring=False, as_json=as_json)

    log = lake / LOG_FOLDER
    if log.exists() and not os.access(log, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(log))
    keep_following(
        origin,
        lake,
        settings,
        notify=lambda text: click.echo(f"follow: {text}", err=True),
        on_report=show,
    )


@contextmanager
def show_blocks() -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar on stderr if that is a terminal."""
    with progress_bar(
        TextColumn("masterchain blocks"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[transactions]:,} transactions"),
        TimeRemainingColumn(),
    ) as bar:
        task = bar.add_task("ingest", total=None, transactions=0)

        def show(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.mc_blocks,
                total=progress.mc_blocks_total,
                transactions=progress.transactions,
            )

        yield show


def print_report(report: IngestReport, *, as_json: bool) -> None:
    """Print the report of an ingest, as text or JSON."""
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
        return
    if not report.committed and not report.holes and report.stopped_at is None:
        click.echo(f"masterchain {report.requested}: nothing new, the lake has all of it")
    if report.committed:
        rows = ", ".join(f"{count:,} {name}" for name, count in report.rows.items() if count)
        click.echo(
            f"masterchain {report.requested}: {count_noun(report.commits, 'commit')} "
            f"from {report.committed[0]} to {report.committed[-1]}"
        )
        click.echo(f"rows: {rows}; decoded by {native.describe()}")
    if report.lacks_zero_state:
        what = "its configuration, and its accounts that no block touched, stay unknown"
        cure = "a new lake, ingested from a node that has it in archive/states, knows them"
        click.echo(f"the source has no zero state: {what}; {cure}", err=True)
    for hole in report.holes[:HOLES_SHOWN]:
        click.echo(f"hole at masterchain {hole.mc_seqno}: {hole.kind}: {hole.reason}", err=True)
    if len(report.holes) > HOLES_SHOWN:
        click.echo(f"and {len(report.holes) - HOLES_SHOWN} more holes", err=True)
    if report.stopped_at is not None:
        why = f": {report.stop_reason}" if report.stop_reason else ""
        text = f"stopped before masterchain {report.stopped_at}: not complete yet{why}"
        click.echo(text, err=True)


@click.command("ingest-state")
@required_node_option
@make_lake_option("lake")
@click.option(
    "--at", type=click.IntRange(min=1), help="Masterchain block after which the state is read."
)
@click.option(
    "--accounts",
    type=click.Choice(["all", "active"]),
    default="all",
    show_default=True,
    help="Which accounts: active leaves out those without code.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that read the state; 1: only this one. Default: one per core.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def ingest_state_command(
    *, node: Path, lake: Path, at: int | None, accounts: str, workers: int | None, as_json: bool
) -> None:
    """Add the accounts that the blocks of a lake have not touched: its baseline.

    A lake that begins in the middle of the chain has no others. It must have blocks already.
    """
    with failing_cleanly(IngestError):
        _bring_baseline(node, lake, at=at, accounts=accounts, workers=workers, as_json=as_json)


def _bring_baseline(
    node: Path,
    lake: Path,
    *,
    at: int | None = None,
    accounts: str = "all",
    workers: int | None,
    as_json: bool,
) -> None:
    """Add the baseline of a lake from a node's folder, index it, and print the report."""
    settings = read_settings(IngestSections)
    with (
        closing(open_node(node)) as source,
        _open_stores(node) as stores,
        start_workers(Origin(node), lake, settings, workers or os.cpu_count() or 1) as processes,
        _show_accounts() as show,
    ):
        report = ingest_state(
            source,
            stores,
            lake,
            settings,
            at=at,
            accounts=accounts,
            workers=processes,
            on_progress=show,
        )
    if settings.lake.build_index:
        rebuild_index(lake)
    publish(LogReader(lake), settings.lake)
    _print_baseline(report, as_json=as_json)


@contextmanager
def _open_stores(node: Path) -> Iterator[list[StateStore]]:
    files = StateFiles(node)
    if not (node / CELLDB).is_dir():
        yield [files]
        return
    with closing(open_celldb(node)) as celldb:
        yield [CellDbStates(celldb), files]


@contextmanager
def _show_accounts() -> Iterator[Callable[[BaselineProgress], None]]:
    """Show a progress bar on stderr if that is a terminal."""
    with progress_bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[accounts]:,} accounts"),
        TimeRemainingColumn(),
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def show(progress: BaselineProgress) -> None:
            step = progress.step
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=1.0, accounts=0)
            bar.update(tasks[step], completed=progress.share, accounts=progress.accounts)

        yield show


def _print_baseline(report: BaselineReport, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
        return
    rows = ", ".join(f"{count:,} {name}" for name, count in sorted(report.rows.items()))
    verb = "baseline" if report.is_new else "the lake has the baseline already: it is"
    click.echo(
        f"{verb} of masterchain {report.mc_seqno}, from the state after"
        f" {report.state_mc_seqno} ({report.accounts} accounts)"
    )
    click.echo(f"rows: {rows}")


commands: list[click.Command] = [ingest_command, ingest_state_command]

"""The command ``tonlake ingest-state``: adds all accounts as of the beginning of a lake."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click
import msgspec
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tonlake.ingest.command.node import required_node_option
from tonlake.ingest.decode.rows import give_arrow_its_heap
from tonlake.ingest.errors import IngestError
from tonlake.ingest.run.baseline import (
    BaselineProgress,
    BaselineReport,
    ingest_state,
    lacks_baseline,
)
from tonlake.ingest.run.workers import start_workers
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.celldb import NAME as CELLDB
from tonlake.ingest.source.node.celldb import open_celldb
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.source.node.statefile import CellDbStates, StateFiles, StateStore
from tonlake.ingest.source.origin import Origin
from tonlake.lake.command.argument import make_lake_option
from tonlake.lake.command.cli import failing_cleanly, progress_bar, read_settings
from tonlake.lake.commit.delta import publish
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.state import LogReader, LogState


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
        report = bring_baseline(
            node, lake, at=at, only_active=accounts == "active", workers=workers
        )
    print_baseline(report, as_json=as_json)


def bring_baseline(
    node: Path,
    lake: Path,
    *,
    at: int | None = None,
    only_active: bool = False,
    workers: int | None = None,
) -> BaselineReport:
    """Add the baseline of a lake from a node's folder, with a progress bar, and index it."""
    settings = read_settings(IngestSections)
    give_arrow_its_heap()
    with (
        closing(open_node(node)) as source,
        _open_stores(node) as stores,
        start_workers(Origin(node), lake, settings, workers or os.cpu_count() or 1) as processes,
        _progress_bar() as show,
    ):
        report = ingest_state(
            source,
            stores,
            lake,
            settings,
            at=at,
            only_active=only_active,
            workers=processes,
            on_progress=show,
        )
    if settings.lake.build_index:
        rebuild_index(lake)
    publish(LogReader(lake), settings.lake)
    return report


@contextmanager
def _open_stores(node: Path) -> Iterator[list[StateStore]]:
    files = StateFiles(node)
    if not (node / CELLDB).is_dir():
        yield [files]
        return
    with closing(open_celldb(node)) as celldb:
        yield [CellDbStates(celldb), files]


@contextmanager
def _progress_bar() -> Iterator[Callable[[BaselineProgress], None]]:
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


def print_baseline(report: BaselineReport, *, as_json: bool) -> None:
    """Print the report of a baseline, as text or JSON."""
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


def remind_of_baseline(node: Path, lake: Path, state: LogState) -> None:
    """Print that a lake has no baseline, and how to add it."""
    if lacks_baseline(state):
        click.echo(
            f"the lake begins with masterchain {state.known_ranges[0][0]}: accounts that its blocks"
            f" do not touch are unknown; `tonlake ingest-state --node {node} --lake {lake}` adds"
            " them",
            err=True,
        )


commands: list[click.Command] = [ingest_state_command]

"""The commands ``tonlake rebuild``, one per stage of derivation, and ``tonlake upgrade``."""

from collections.abc import Iterator
from pathlib import Path

import click

from tonlake.ingest.derive.stages import STAGES, Stage, rebuild
from tonlake.ingest.derive.tvm.support import find_detector
from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope, Span
from tonlake.lake.command.argument import lake_option
from tonlake.lake.command.cli import failing_cleanly, read_settings, show_progress
from tonlake.lake.command.maintain import (
    rebuild_delta_command,
    rebuild_index_command,
    report_rebuilt,
)
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.place import list_files, read_place
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import Commit, read_state
from tonlake.lake.unanswered import list_reasons

_DONE = {
    "traces": "traces derived",
    "contracts": "contracts found",
    "actions": "actions classified",
    "bodies": "bodies decoded",
}


def upgrade_lake(lake_dir: Path, settings: IngestSections) -> Iterator[tuple[str, Commit]]:
    """Derive missing tables, and what an earlier engine could not run; yield each commit."""
    again = Scope(within=_list_retried(lake_dir, settings))
    for name in ("contracts", "actions") if again.within else ():
        yield from _name(_DONE[name], rebuild(name, lake_dir, settings, again))
    for stage in STAGES:
        scope = Scope()
        if stage.marker is not None:
            files = (list_files(read_state(lake_dir), name) for name in stage.marker)
            places, done = ({read_place(file.path) for file in each} for each in files)
            scope = Scope(within=[Span(at.first, at.last) for at in sorted(places - done)])
        if stage.enabled(settings) and scope.within != []:
            yield from _name(_DONE[stage.name], rebuild(stage.name, lake_dir, settings, scope))
    if settings.lake.build_index:
        yield from _name("index built", rebuild_index(lake_dir))


def _name(what: str, commit: Commit | None) -> Iterator[tuple[str, Commit]]:
    if commit is not None:
        yield what, commit


def _list_retried(lake_dir: Path, settings: IngestSections) -> list[Span]:
    """Return the spans with a get-method that today's engine may be able to run."""
    if not settings.ingest.detect_contracts:
        return []
    engine = find_detector(settings.tvm)
    snapshot = open_snapshot(lake_dir, check_digests=False)
    return [
        Span(place.first, place.last)
        for place, reasons in list_reasons(snapshot)
        if any(engine.may_answer(reason) for reason in reasons)
    ]


_HELP = {
    "traces": "Drop all traces and derive them from the transactions and messages of the lake.",
    "contracts": """Drop all detected wallets, jettons, NFTs and other contracts, and detect
    them again.

    Needed after ranges were ingested out of order, without a TVM, or with detect_contracts off.""",
    "actions": """Classify the traces of ranges without actions, or with actions of another version.

    Base tables and traces stay unchanged. If the result differs, the rows of the previous version
    are kept in superseded_actions.""",
    "bodies": """Decode the message bodies of ranges that have none decoded.

    Ingest decodes the bodies of its commits; this is for ranges of older versions, and with
    --all for new layouts.""",
}
_all_option = click.option(
    "--all", "everything", is_flag=True, help="Also ranges that are up to date."
)


def _make_command(stage: Stage) -> click.Command:
    @click.command(stage.name, help=_HELP[stage.name])
    @lake_option
    def command(*, lake_dir: Path, everything: bool = True) -> None:
        with failing_cleanly(IngestError), show_progress("ranges") as show:
            settings = read_settings(IngestSections)
            scope = Scope(everything=everything, on_range=show)
            commit = rebuild(stage.name, lake_dir, settings, scope)
        added = () if commit is None else commit.added
        report_rebuilt(lake_dir, commit, stage.name, sorted({file.table for file in added}))

    return _all_option(command) if stage.has_versions else command


@click.command("upgrade")
@lake_option
def upgrade_command(*, lake_dir: Path) -> None:
    """Derive what an earlier version of tonlake did not.

    Existing files stay; missing tables are derived from them in ordinary commits: traces,
    contracts, actions, index. Contracts whose get-methods an earlier engine could not run are
    detected again. The same command resumes where it was stopped.
    """
    done = 0
    with failing_cleanly():
        settings = read_settings(IngestSections)
        for what, commit in upgrade_lake(lake_dir, settings):
            done += 1
            click.echo(f"commit {commit.number}: {what}")
    if not done:
        click.echo("nothing to do: the lake is up to date")


@click.group("rebuild")
def rebuild_group() -> None:
    """Recompute what is derived from the lake's rows."""


for _command in (rebuild_index_command, rebuild_delta_command, *map(_make_command, STAGES)):
    rebuild_group.add_command(_command)
commands: list[click.Command] = [rebuild_group, upgrade_command]

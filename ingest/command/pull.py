"""The commands ``tonlake pull`` and ``tonlake export``: copy a lake, once or as it grows."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click
import msgspec

from tonlake.ingest.blocks import MASTERCHAIN_SHARD, BlockId
from tonlake.ingest.errors import ChainUnproven, SourceError
from tonlake.ingest.run.proven import ProofChecker
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.command.argument import LAKE_FOLDER, SOURCE, FolderOrURL, lake_option
from tonlake.lake.command.cli import (
    EXIT_DATA,
    count_noun,
    failing_cleanly,
    json_option,
    read_settings,
    show_progress,
)
from tonlake.lake.commit.delta import publish
from tonlake.lake.copy.follow import follow_source
from tonlake.lake.copy.pull import PullReport, copy_lake
from tonlake.lake.log.snapshot import Selection, parse_days, select_tables
from tonlake.lake.log.state import LogReader, read_state
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.settings import LakeSections

_BLOCK = re.compile(r"([0-9]{1,10}):([0-9a-fA-F]{64}):([0-9a-fA-F]{64})")

days_option = click.option(
    "--days", help="UTC days YYYY-MM-DD..YYYY-MM-DD, either end may be left out."
)
tables_option = click.option(
    "--tables", help="Tables, separated by commas; blocks is always included."
)


@click.command("export")
@lake_option
@click.option(
    "--to",
    "target",
    type=FolderOrURL(LAKE_FOLDER),
    required=True,
    help="Folder to write; created if it does not exist.",
)
@days_option
@tables_option
@json_option
def export_command(
    *, lake_dir: Path, target: Path | str, days: str | None, tables: str | None, as_json: bool
) -> None:
    """Copy a lake, or some of its days and tables, into a folder or object storage."""
    selection = _read_selection(days, tables)
    with failing_cleanly(), show_progress("files") as show:
        read_state(lake_dir)  # a folder without a lake is refused before the copy's is made
        report = _copy(lake_dir, target, selection, read_settings(LakeSections), show)
    _print(target, report, as_json=as_json)


@click.command("pull")
@click.argument("place", metavar="SOURCE", type=SOURCE)
@lake_option
@days_option
@tables_option
@click.option("--follow", is_flag=True, help="Continue with every new commit.")
@click.option(
    "--check-proofs",
    "known",
    metavar="BLOCK",
    callback=lambda _ctx, _param, text: None if text is None else _read_known(text),
    help="Verify all blocks from a trusted one: a network's configuration file, which names its"
    " init block, or SEQNO:ROOT_HASH:FILE_HASH of a masterchain block, in hex.",
)
@json_option
def pull_command(
    *,
    place: Path | str,
    lake_dir: Path,
    days: str | None,
    tables: str | None,
    follow: bool,
    known: BlockId | None,
    as_json: bool,
) -> None:
    """Copy a lake, or some of its days and tables, from another; every byte is verified."""
    selection = _read_selection(days, tables)
    with failing_cleanly():
        settings = read_settings(LakeSections)
        checker = None if known is None else ProofChecker(lake_dir, known, settings.lake)

        def show_copied(report: PullReport) -> None:
            _print(lake_dir, report, as_json=as_json)
            if checker is not None:
                _check_proofs(lake_dir, checker)

        if follow:
            if checker is not None and LogReader(lake_dir).read().number:
                _check_proofs(lake_dir, checker)
            follow_source(
                *(place, lake_dir, selection, settings),
                notify=lambda text: click.echo(f"pull: {text}", err=True),
                on_report=show_copied,
            )
            return
        with show_progress("files") as show:
            report = _copy(place, lake_dir, selection, settings, show)
        show_copied(report)


def _copy(
    place: Path | str,
    target: Path | str,
    selection: Selection,
    settings: LakeSections,
    show: Callable[[int, int], None],
) -> PullReport:
    report = copy_lake(place, target, selection, key=settings.pull.key, on_file=show)
    if isinstance(target, Path):
        publish(LogReader(target), settings.lake)
        if report.commits:
            sweep_orphans(target, settings.lake)
    return report


def _check_proofs(lake_dir: Path, checker: ProofChecker) -> None:
    """Print on stderr how many blocks of a copy are proven; exit if one is not."""
    try:
        proven = checker.check()
    except ChainUnproven as error:
        click.echo(f"error: {lake_dir} is copied, but not proven: {error}", err=True)
        sys.exit(EXIT_DATA)
    click.echo(
        f"proven: {proven.masterchain:,} masterchain blocks {proven.first_mc_seqno}.."
        f"{proven.last_mc_seqno} and {proven.shard_blocks:,} shard blocks",
        err=True,
    )


def _read_selection(days: str | None, tables: str | None) -> Selection:
    try:
        names = None if tables is None else [name.strip() for name in tables.split(",")]
        chosen = None if names is None else select_tables(tuple(filter(None, names)))
        return Selection(*parse_days(".." if days is None else days), chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _read_known(text: str) -> BlockId:
    match = _BLOCK.fullmatch(text)
    if match is not None:
        hashes = (bytes.fromhex(match[at]) for at in (2, 3))
        return BlockId(MASTERCHAIN, MASTERCHAIN_SHARD, int(match[1]), *hashes)
    # Imported here, since loading the library for lite servers' keys takes a moment.
    from tonlake.ingest.source.liteserver.config import read_config  # noqa: PLC0415

    try:
        found = read_config(Path(text)).init_block
    except SourceError as error:
        raise click.BadParameter(f"it is not SEQNO:ROOT_HASH:FILE_HASH, and {error}") from error
    if found is None or not found.seqno:
        raise click.BadParameter(
            f"{text} names no init block after the zero state: name a masterchain block as "
            "SEQNO:ROOT_HASH:FILE_HASH"
        )
    return found


def _print(target: Path | str, report: PullReport, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(report))
        return
    if not report.commits:
        click.echo(f"{target} already has all {report.snapshot:,} commits of its source")
        return
    lacking = report.selection.lacking
    click.echo(
        f"{target}: {count_noun(report.commits, 'commit')} up to {report.snapshot}, masterchain "
        f"{report.ranges[0][0]}..{report.ranges[-1][1]}: {count_noun(report.files, 'file')}, "
        f"{report.rows:,} rows, {report.bytes:,} bytes, all checked"
        + (f"; without {count_noun(len(lacking), 'table')}" if lacking else "")
    )


commands: list[click.Command] = [export_command, pull_command]

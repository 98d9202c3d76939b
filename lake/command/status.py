"""Figures about a lake: ranges, holes, sizes by table, the last commit."""

from itertools import pairwise

import msgspec
from rich.console import Console
from rich.table import Table

from tonlake.lake.command.cli import count_noun, fill_template
from tonlake.lake.duck.own import OwnState, read_definitions, read_own_state
from tonlake.lake.index.builder.plan import is_current, is_readable, range_of
from tonlake.lake.log.following import Lag, measure_lag
from tonlake.lake.log.ranges import Range, subtract_ranges
from tonlake.lake.log.snapshot import WHOLE, Selection, Snapshot, read_selection
from tonlake.lake.log.state import Baseline, Commit, NetworkId, Undoing
from tonlake.lake.schema import SCHEMA_VERSION, TABLES, TRANSACTIONS
from tonlake.lake.unanswered import Unanswered, count_unanswered


class OwnTableStatus(msgspec.Struct, frozen=True):
    """Size of a user-defined table, the commit it is up to date with, and its last error."""

    files: int
    rows: int
    bytes: int
    commit: int
    error: str | None


class TableStatus(msgspec.Struct, frozen=True):
    """Size of one table; bytes per row is None if it has no rows."""

    files: int
    rows: int
    bytes: int
    bytes_per_row: float | None


class IndexStatus(msgspec.Struct, frozen=True):
    """Index segments: their number, transactions and bytes; masterchain blocks without an index.

    Segments in the format of another version count only as ``unreadable``. The traces or contracts
    of ``outdated`` segments were derived again later.
    """

    segments: int = msgspec.field(name="runs")
    rows: int
    bytes: int
    missing: tuple[Range, ...]
    rows_missing: int
    unreadable: int
    outdated: int


class Status(msgspec.Struct, frozen=True):
    """The lake as of one commit; ``holes`` are masterchain blocks missing between ranges.

    ``pruned`` are blocks that it had, of which the kept rows remain. ``undoings`` are commits that
    removed blocks of an abandoned fork. ``lag`` is how far the lake is behind its follower's node.
    ``selection`` is the days and tables of a partial copy; None if the lake is complete.
    ``baseline`` is the state that the lake begins with, if not with the zero state.
    ``reported`` are masterchain blocks whose rows come from the public data set.
    ``unanswered_methods`` are the get-methods that no engine could run. ``missing_files`` are in
    the log, but not in the folder.
    """

    snapshot: int
    schema_version: int
    network: NetworkId | None
    first_mc_seqno: int
    last_mc_seqno: int
    ranges: tuple[Range, ...]
    holes: tuple[Range, ...]
    pruned: tuple[Range, ...]
    tables: dict[str, TableStatus]
    bytes: int
    lookups: IndexStatus
    last_commit: Commit
    undoings: tuple[Undoing, ...]
    lag: Lag
    selection: Selection | None = None
    baseline: Baseline | None = None
    reported: tuple[Range, ...] = ()
    own_tables: dict[str, OwnTableStatus] = {}
    unanswered_methods: tuple[Unanswered, ...] = ()
    missing_files: tuple[str, ...] = ()


def read_status(snapshot: Snapshot, last_commit: Commit) -> Status:
    """Return the figures of a snapshot; of data files it opens those of unanswered get-methods."""
    stored = sorted(snapshot.state.stored)
    tables = {name: _table_status(snapshot, name) for name in TABLES}
    selection = read_selection(snapshot.lake_dir)
    return Status(
        snapshot=snapshot.number,
        schema_version=SCHEMA_VERSION,
        network=snapshot.state.network,
        first_mc_seqno=snapshot.first_mc_seqno,
        last_mc_seqno=snapshot.last_mc_seqno,
        ranges=snapshot.ranges,
        holes=tuple((left[1] + 1, right[0] - 1) for left, right in pairwise(snapshot.ranges)),
        pruned=snapshot.state.pruned_ranges,
        tables=tables,
        bytes=sum(table.bytes for table in tables.values()),
        lookups=read_index_status(snapshot),
        last_commit=last_commit,
        undoings=snapshot.state.undoings,
        lag=measure_lag(snapshot.lake_dir, snapshot),
        selection=None if selection == WHOLE else selection,
        baseline=snapshot.baseline,
        reported=snapshot.state.reported_ranges,
        own_tables={
            name: _own_table_status(read_own_state(snapshot.lake_dir, name))
            for name in read_definitions(snapshot.lake_dir)
        },
        unanswered_methods=tuple(count_unanswered(snapshot)),
        missing_files=tuple(name for name in stored if not (snapshot.lake_dir / name).exists()),
    )


def _own_table_status(state: OwnState) -> OwnTableStatus:
    parts = state.parts.values()
    size = sum(part.bytes for part in parts)
    return OwnTableStatus(len(parts), state.rows, size, state.commit, state.error)


def read_index_status(snapshot: Snapshot) -> IndexStatus:
    """Return how much of a snapshot has a usable index."""
    readable = [segment for segment in snapshot.segments if is_readable(segment)]
    rows = sum(segment.rows for segment in readable)
    return IndexStatus(
        segments=len(readable),
        rows=rows,
        bytes=sum(segment.bytes for segment in readable),
        missing=subtract_ranges(snapshot.known_ranges, map(range_of, readable)),
        rows_missing=sum(file.rows for file in snapshot.files[TRANSACTIONS.name]) - rows,
        unreadable=len(snapshot.segments) - len(readable),
        outdated=sum(not is_current(snapshot.state, segment) for segment in readable),
    )


def _table_status(snapshot: Snapshot, name: str) -> TableStatus:
    files = snapshot.files[name]
    rows = sum(file.rows for file in files)
    size = sum(file.bytes for file in files)
    return TableStatus(len(files), rows, size, round(size / rows, 1) if rows else None)


def render_status(status: Status, console: Console) -> None:
    """Print the figures for humans: sentences of a template, then the sizes of the tables."""
    text = fill_template(
        __package__, "status.txt", status=status, describe_outdated=describe_outdated
    )
    console.print(text, markup=False)
    grid = Table(box=None, pad_edge=False)
    grid.add_column("table")
    for heading in ("files", "rows", "bytes", "bytes/row"):
        grid.add_column(heading, justify="right")
    for name, table in status.tables.items():
        per_row = "" if table.bytes_per_row is None else f"{table.bytes_per_row:,.1f}"
        grid.add_row(name, f"{table.files:,}", f"{table.rows:,}", f"{table.bytes:,}", per_row)
    grid.add_row("all", "", "", f"{status.bytes:,}", "")
    console.print(grid)
    for name, own in status.own_tables.items():
        size = f"{own.rows:,} rows, {own.bytes:,} bytes, commit {own.commit}"
        text = f"User-defined table {name}: {size}"
        console.print(f"{text}; failed since: {own.error}" if own.error else text, markup=False)


def describe_outdated(segments: int) -> str:
    """Describe outdated segments, with advice."""
    return (
        f"{count_noun(segments, 'segment')} older than the traces or contracts of their blocks, "
        "so SQL answers, more slowly, until `tonlake rebuild index`"
    )

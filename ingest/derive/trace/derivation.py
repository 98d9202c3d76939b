"""Trace files of the lake: written by commits, replaced by rebuilds and undos.

Each range of masterchain blocks has one file of ``transaction_traces``, with its transactions, and
one of ``traces``, with the complete traces that end in it; incomplete traces are in the open files.
So the files depend only on the base rows and the ranges of the commits. A commit at the end of the
chain adds files and replaces the open ones; a commit of earlier blocks also replaces the files of
the traces that it completes.

When the newest blocks are undone, files of earlier ranges do not change. Traces that began before
the first undone block and ended in undone blocks, or were open, are assembled again from the
remaining transactions.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.trace.assembly import (
    MESSAGE_COLUMNS,
    TRANSACTION_COLUMNS,
    OpenTraces,
    assemble,
)
from tonlake.ingest.errors import TraceImpossible, TracesMissing
from tonlake.ingest.spread import HERE
from tonlake.lake.file.rows import read_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
    Place,
    is_open,
    list_files,
    list_files_at,
    list_files_between,
    list_open_files,
    list_places,
    read_place,
)
from tonlake.lake.schema import (
    MESSAGES,
    OPEN_EDGES,
    TABLES,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.span import Scope
    from tonlake.ingest.spread import Spread
    from tonlake.lake.log.state import Commit, DataFile, LogState

TRACE_TABLES = (TRANSACTION_TRACES.name, TRACES.name, OPEN_EDGES.name)


def open_files(traces: OpenTraces, last: Place) -> Iterator[NewFile]:
    """Yield the files of the open traces of a lake whose last commit has the place ``last``."""
    place = Place(0, 0, last.day)
    yield NewFile(TRACES.name, place, traces.traces)
    yield NewFile(OPEN_EDGES.name, place, traces.edges)


class TraceFiles:
    """Derives the trace files of a commit: the stage ``traces``."""

    def __init__(self, lake_dir: Path, spread: Spread = HERE) -> None:
        """Create the stage for a lake; ``spread`` assembles the rows."""
        self._lake_dir, self._spread = lake_dir, spread
        self._derived = OpenTraces()
        self._known: tuple[set[str], OpenTraces] | None = None

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        _earlier: Sequence[NewFile] = (),
    ) -> Derivation:
        """Return the trace files that follow from another range of base rows.

        Raises:
            TraceImpossible: the messages form a cycle.
            TracesMissing: the lake has transactions without traces.
            LakeCorrupt: a file to be replaced is damaged.
        """
        _check_traced(state)
        opened = list_open_files(state, *TRACE_TABLES)
        transactions = rows.get(TRANSACTIONS.name, TRANSACTIONS.empty).select(TRANSACTION_COLUMNS)
        messages = rows.get(MESSAGES.name, MESSAGES.empty).select(MESSAGE_COLUMNS)
        work = partial(assemble, transactions, messages)
        step = self._spread.submit(work, self._read_open(opened)).result()
        self._derived = step.open
        mended = [*self._move_transactions(state, step.moved)]
        mended += self._add_complete(state, _between(step.complete, place, inside=False))
        last = place if place.first > _end(state) else max((place, *list_places(state)))
        files = [
            NewFile(TRANSACTION_TRACES.name, place, step.transactions),
            NewFile(TRACES.name, place, _between(step.complete, place, inside=True)),
            *(file for file, _replaced in mended),
            *open_files(step.open, last),
        ]
        replaced = [*opened, *(old for _file, files in mended for old in files)]
        return Derivation(files, frozenset(file.path for file in replaced))

    def learn(self, commit: Commit) -> None:
        """Keep the open rows derived last, which the commit has written to files."""
        paths = {file.path for file in commit.added if is_open(file.path)}
        traces, edges = self._derived
        opened = OpenTraces(sort_rows(traces, TRACES), sort_rows(edges, OPEN_EDGES))
        # A file that was already live is not among the files that the commit adds.
        is_whole = len(paths) == sum(rows.num_rows > 0 for rows in opened)
        self._known = (paths, opened) if is_whole else None

    def _read_open(self, opened: Sequence[DataFile]) -> OpenTraces:
        if self._known is not None and self._known[0] == {file.path for file in opened}:
            return self._known[1]
        found = {file.table: read_rows(self._lake_dir, file) for file in opened}
        nothing = OpenTraces()
        return OpenTraces(
            found.get(TRACES.name, nothing.traces), found.get(OPEN_EDGES.name, nothing.edges)
        )

    def _move_transactions(
        self, state: LogState, moved: pa.Table
    ) -> Iterator[tuple[NewFile, list[DataFile]]]:
        """Yield new files of transactions moved to another trace, with the files they replace."""
        if not moved.num_rows:
            return
        starts, ends = moved["mc_seqno_start"], moved["mc_seqno_end"]
        span = pc.min(starts).as_py(), pc.max(ends).as_py()
        for file in list_files_between(state, *span, TRANSACTION_TRACES.name):
            at = read_place(file.path)
            here = pc.and_(pc.less_equal(starts, at.last), pc.greater_equal(ends, at.first))
            if not pc.any(here).as_py():
                continue
            rows = read_rows(self._lake_dir, file)
            mended = move_rows(rows, moved.filter(here))
            if not mended.equals(rows):
                yield NewFile(file.table, at, mended), [file]

    def _add_complete(
        self, state: LogState, complete: pa.Table
    ) -> Iterator[tuple[NewFile, list[DataFile]]]:
        """Yield new files of traces completed in earlier ranges, with the files they replace."""
        if not complete.num_rows:
            return
        places = list_places(state)
        lasts = [at.last for at in places]
        homes = [bisect_left(lasts, end) for end in complete["mc_seqno_end"].to_pylist()]
        for home in sorted(set(homes)):
            here = list_files_at(state, places[home], TRACES.name)
            parts = [read_rows(self._lake_dir, file) for file in here]
            parts.append(complete.filter(pa.array([at == home for at in homes])))
            yield NewFile(TRACES.name, places[home], pa.concat_tables(parts)), here


def move_rows(rows: pa.Table, moved: pa.Table) -> pa.Table:
    """Return rows of ``transaction_traces`` with the traces in ``moved`` under their new roots."""
    old_ids = moved["trace_id"].combine_chunks()
    trace_at = pc.index_in(rows["trace_id"], value_set=old_ids)
    root_at = pc.index_in(rows["hash"], value_set=old_ids)
    new_ids = moved["new_trace_id"].take(trace_at)
    parents = moved["parent_hash"].take(root_at)
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    columns["trace_id"] = pc.coalesce(new_ids, rows["trace_id"])
    columns["parent_hash"] = pc.coalesce(parents, rows["parent_hash"])
    return pa.table(columns, schema=rows.schema)


def _check_traced(state: LogState) -> None:
    if TRANSACTIONS.name in state.by_table and not state.by_table.keys() & TRACE_TABLES:
        raise TracesMissing(
            "the lake has transactions without traces: run `tonlake rebuild traces` first"
        )


def _between(complete: pa.Table, place: Place, *, inside: bool) -> pa.Table:
    """Return the traces that ended inside the range of a place, or all others."""
    ends = complete["mc_seqno_end"]
    first, last = (pa.scalar(seqno, pa.int64()) for seqno in (place.first, place.last))
    is_here = pc.and_(pc.greater_equal(ends, first), pc.less_equal(ends, last))
    return complete.filter(is_here if inside else pc.invert(is_here))


def _end(state: LogState) -> int:
    return state.ranges[-1][1] if state.ranges else 0


_COLUMNS = {TRANSACTIONS.name: TRANSACTION_COLUMNS, MESSAGES.name: MESSAGE_COLUMNS}


def rederive_traces(
    lake_dir: Path, state: LogState, _settings: IngestSections, scope: Scope
) -> Derivation:
    """Return the trace files of all ranges, which replace the present ones.

    Raises:
        LakeCorrupt: a base file is damaged.
        TraceImpossible: the messages cannot come from a chain.
    """
    old = frozenset(file.path for file in list_files(state, *TRACE_TABLES))
    return Derivation(_rederive_ranges(lake_dir, state, scope.on_range), old)


def _rederive_ranges(
    lake_dir: Path, state: LogState, on_range: Callable[[int, int], None]
) -> Iterator[NewFile]:
    places = list_places(state)
    base = {(file.table, read_place(file.path)): file for file in list_files(state, *_COLUMNS)}
    before = OpenTraces()
    for done, place in enumerate(places, 1):
        transactions, messages = (
            read_rows(lake_dir, base[name, place], columns)
            if (name, place) in base
            else TABLES[name].empty
            for name, columns in _COLUMNS.items()
        )
        step = assemble(transactions, messages, before)
        _check_order(step.moved, step.complete, place)
        before = step.open
        yield NewFile(TRANSACTION_TRACES.name, place, step.transactions)
        yield NewFile(TRACES.name, place, step.complete)
        on_range(done, len(places))
    if places:
        yield from open_files(before, places[-1])


def _check_order(moved: pa.Table, complete: pa.Table, place: Place) -> None:
    """Raise TraceImpossible if a trace continues in a masterchain block before its root's."""
    ends = complete["mc_seqno_end"].to_pylist()
    if moved.num_rows or any(not place.first <= end <= place.last for end in ends):
        raise TraceImpossible(
            f"a message sent in masterchain blocks {place.first}..{place.last} was consumed in "
            "an earlier one: the rows of transactions and messages cannot come from a chain"
        )


def reopen_traces(lake_dir: Path, state: LogState, first_gone: int) -> list[NewFile]:
    """Return the open files of a lake without its masterchain blocks from ``first_gone`` on.

    Raises:
        LakeCorrupt: a required file is damaged.
        TraceImpossible: the lake's traces do not match its rows.
    """
    places = [place for place in list_places(state) if place.first < first_gone]
    starts = _list_cut(lake_dir, state, first_gone)
    oldest = pc.min(starts["mc_seqno_start"]).as_py() if starts.num_rows else first_gone

    def read(table: str, columns: Sequence[str], key: str, values: pa.ChunkedArray) -> pa.Table:
        fields = pa.schema([TABLES[table].arrow.field(name) for name in columns])
        stays = (pc.field("mc_seqno") < first_gone) & pc.field(key).isin(values.combine_chunks())
        rows = [
            read_rows(lake_dir, file, columns, stays)
            for file in list_files(state, table)
            if not is_open(file.path) and oldest <= read_place(file.path).last
            if read_place(file.path).first < first_gone
        ]
        return pa.concat_tables([fields.empty_table(), *rows])

    hashes = read(TRANSACTION_TRACES.name, ("hash",), "trace_id", starts["trace_id"])["hash"]
    transactions = read(TRANSACTIONS.name, TRANSACTION_COLUMNS, "hash", hashes)
    messages = read(MESSAGES.name, MESSAGE_COLUMNS, "tx_hash", hashes)
    step = assemble(transactions, messages, OpenTraces())
    if step.complete.num_rows:
        raise TraceImpossible(
            f"{step.complete.num_rows} traces recorded as continuing after masterchain "
            f"block {first_gone - 1} end before it: run `tonlake rebuild traces`"
        )
    return list(open_files(step.open, places[-1]))


def _list_cut(lake_dir: Path, state: LogState, first_gone: int) -> pa.Table:
    """Return id and start of the traces that begin before ``first_gone`` and end later."""
    columns = ("trace_id", "mc_seqno_start")
    before = pc.field("mc_seqno_start") < first_gone
    cut = before & (pc.field("mc_seqno_end") >= first_gone)
    parts = [
        read_rows(lake_dir, file, columns, before if is_open(file.path) else cut)
        for file in list_files(state, TRACES.name)
        if is_open(file.path) or read_place(file.path).last >= first_gone
    ]
    fields = pa.schema([TRACES.arrow.field(name) for name in columns])
    return pa.concat_tables([fields.empty_table(), *parts])

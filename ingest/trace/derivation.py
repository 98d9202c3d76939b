"""Traces as files of the lake: what a commit adds, and which files of earlier ones it replaces.

Each range of masterchain blocks has one file of ``transaction_traces``, of its transactions, and
one of ``traces``, of the complete traces that end in it; what is not complete stands in the open
files. So the files follow from the base rows and the borders of the commits alone. A commit at
the end of the chain adds files and replaces the open ones; one that comes before rows already
there also replaces the files of the traces that it heals.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import TracesMissing
from ingest.trace.assembly import OpenTraces, assemble
from lake.place import Derivation, NewFile, Place, list_places, read_place
from lake.rows import read_rows
from lake.schema import MESSAGES, OPEN_EDGES, TRACES, TRANSACTION_TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lake.log import DataFile, LogState

TRACE_TABLES = (TRANSACTION_TRACES.name, TRACES.name, OPEN_EDGES.name)


def open_files(traces: OpenTraces, last: Place) -> Iterator[NewFile]:
    """Yield the files of what is open in a lake whose last commit has the place ``last``."""
    place = Place(0, 0, last.day)
    yield NewFile(TRACES.name, place, traces.traces)
    yield NewFile(OPEN_EDGES.name, place, traces.edges)


class TraceFiles:
    """Derives the trace files of a commit; call it as ``lake.place.Derive``."""

    def __init__(self, lake_dir: Path) -> None:
        """Take the lake's folder."""
        self._lake_dir = lake_dir

    def __call__(self, state: LogState, rows: Mapping[str, pa.Table], place: Place) -> Derivation:
        """Return the trace files that follow from one more range of base rows.

        Raises:
            TraceImpossible: the messages form a ring.
            TracesMissing: the lake has transactions without traces.
            LakeCorrupt: a file that is to be replaced is damaged.
        """
        mine = _list_trace_files(state)
        before = self._read_open(mine)
        transactions = rows.get(TRANSACTIONS.name, TRANSACTIONS.arrow.empty_table())
        messages = rows.get(MESSAGES.name, MESSAGES.arrow.empty_table())
        step = assemble(transactions, messages, before)
        files = [NewFile(TRANSACTION_TRACES.name, place, step.transactions)]
        files += self._move_transactions(mine, step.moved)
        files += self._place_complete(state, mine, step.complete, place)
        last = place if place.first > _end(state) else max((place, *list_places(state)))
        files += open_files(step.open, last)
        written = {(file.table, file.place) for file in files}
        return Derivation(
            files=[file for file in files if file.rows.num_rows],
            removed=frozenset(
                file.path for file, at in mine.items() if at.is_open or (file.table, at) in written
            ),
        )

    def _read_open(self, mine: Mapping[DataFile, Place]) -> OpenTraces:
        found = {
            file.table: read_rows(self._lake_dir, file)
            for file, place in mine.items()
            if place.is_open
        }
        nothing = OpenTraces()
        return OpenTraces(
            found.get(TRACES.name, nothing.traces), found.get(OPEN_EDGES.name, nothing.edges)
        )

    def _move_transactions(
        self, mine: Mapping[DataFile, Place], moved: pa.Table
    ) -> Iterator[NewFile]:
        """Yield the files of transactions that belong to another trace from now on."""
        if not moved.num_rows:
            return
        starts, ends = moved["mc_seqno_start"], moved["mc_seqno_end"]
        for file, at in mine.items():
            if file.table != TRANSACTION_TRACES.name:
                continue
            here = pc.and_(pc.less_equal(starts, at.last), pc.greater_equal(ends, at.first))
            if not pc.any(here).as_py():
                continue
            rows = read_rows(self._lake_dir, file)
            mended = move_rows(rows, moved.filter(here))
            if not mended.equals(rows):
                yield NewFile(file.table, at, mended)

    def _place_complete(
        self, state: LogState, mine: Mapping[DataFile, Place], complete: pa.Table, place: Place
    ) -> Iterator[NewFile]:
        """Yield complete traces, each group with those that ended in the same range before."""
        ends = complete["mc_seqno_end"]
        is_here = pc.and_(pc.greater_equal(ends, place.first), pc.less_equal(ends, place.last))
        yield NewFile(TRACES.name, place, complete.filter(is_here))
        elsewhere = complete.filter(pc.invert(is_here))
        if not elsewhere.num_rows:
            return
        places = list_places(state)
        lasts = [at.last for at in places]
        homes = [bisect_left(lasts, end) for end in elsewhere["mc_seqno_end"].to_pylist()]
        for home in sorted(set(homes)):
            parts = [
                read_rows(self._lake_dir, file)
                for file, at in mine.items()
                if file.table == TRACES.name and at == places[home]
            ]
            parts.append(elsewhere.filter(pa.array([at == home for at in homes])))
            yield NewFile(TRACES.name, places[home], pa.concat_tables(parts))


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


def _list_trace_files(state: LogState) -> dict[DataFile, Place]:
    mine = {file: read_place(file.path) for file in state.files if file.table in TRACE_TABLES}
    if not mine and any(file.table == TRANSACTIONS.name for file in state.files):
        raise TracesMissing(
            "the lake has transactions without traces: run `tonlake rebuild traces` first"
        )
    return mine


def _end(state: LogState) -> int:
    return state.ranges[-1][1] if state.ranges else 0

"""Gathers the rows of traces from the lake and from the commit that completes them.

A trace may span a day: of the files of its blocks only those with some of its transactions are
read, and only its own rows are kept. The commit is in memory and is not copied: a process that
classifies some of the traces selects their rows from it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.stored import (
    INIT_STATE_COLUMNS,
    INIT_STATES,
    SOURCES,
    Rows,
    filter_rows,
    list_data_hashes,
    list_sales,
)
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Place, list_files_between, read_place
from tonlake.lake.schema import MESSAGES, STATE_CELLS, TABLES, TRANSACTION_TRACES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tonlake.lake.log.state import DataFile, LogState

_LT_COLUMNS = {TRANSACTIONS.name: "lt", MESSAGES.name: "tx_lt", TRANSACTION_TRACES.name: "lt"}
_READ = (*SOURCES, STATE_CELLS.name)
_FILTERED_ROWS = 10_000
"""Larger files are filtered while they are read, which is slower for small ones."""


def gather_sources(
    lake_dir: Path,
    state: LogState,
    traces: pa.Table,
    at_hand: Mapping[str, pa.Table],
    place: Place,
    moved: Mapping[Place, pa.Table] | None = None,
) -> Rows:
    """Return the rows of all transactions of traces: all of ``at_hand``, and theirs in the lake.

    Args:
        lake_dir: Folder of the lake.
        state: State of the lake.
        traces: Rows of ``traces``.
        at_hand: Rows of a range that is not in the lake yet, by table.
        place: That range.
        moved: Rows of ``transaction_traces`` that replace those of ranges in the lake.
    """
    if not traces.num_rows:
        return Rows({})
    first, last = pc.min(traces["mc_seqno_start"]).as_py(), pc.max(traces["mc_seqno_end"]).as_py()
    is_all_at_hand = bool(at_hand) and place.first <= first and last <= place.last
    files = [] if is_all_at_hand else list_files_between(state, first, last, *_READ)
    fresh = at_hand if _overlaps(place, first, last) else {}
    lts = pc.min(traces["start_lt"]).as_py(), pc.max(traces["end_lt"]).as_py()
    gathering = _Gathering(lake_dir, files, fresh, lts)
    ids = traces["trace_id"].unique()
    members = filter_rows(
        gathering.collect(TRANSACTION_TRACES.name, "trace_id", ids, moved=moved or {}),
        "trace_id",
        ids,
    )
    near = gathering.narrow(members["mc_seqno"].unique().to_pylist())
    hashes = members["hash"].unique()
    tables = {TRANSACTION_TRACES.name: members}
    tables[TRANSACTIONS.name] = near.collect(TRANSACTIONS.name, "hash", hashes)
    of_each = tables[TRANSACTIONS.name].select(("hash", "account"))
    accounts = filter_rows(of_each, "hash", hashes)["account"].unique()
    for name in SOURCES.keys() - tables.keys():
        column, values = "account", accounts
        if name == MESSAGES.name:
            column, values = "tx_hash", hashes
        tables[name] = near.collect(name, column, values)
    found = Rows(tables)
    data_hashes = list_data_hashes(found, hashes)
    sales = list_sales(found, accounts)
    found = _add_cells(lake_dir, near.files, found, at_hand, data_hashes)
    return _add_init_states(lake_dir, near.files, found, at_hand, sales)


class _Gathering(NamedTuple):
    """Sources of rows of some traces: files, rows in memory, and the first and last lt."""

    lake_dir: Path
    files: Sequence[DataFile]
    at_hand: Mapping[str, pa.Table]
    lts: tuple[int, int]

    def narrow(self, mc_seqnos: Sequence[int]) -> _Gathering:
        """Restrict the files to those with rows of some masterchain blocks."""
        if not self.files:
            return self
        places = {read_place(file.path) for file in self.files}
        ordered = sorted(mc_seqnos)
        near = {
            place
            for place in places
            if bisect_left(ordered, place.first) < bisect_right(ordered, place.last)
        }
        return self._replace(files=[file for file in self.files if read_place(file.path) in near])

    def collect(
        self,
        name: str,
        column: str,
        values: pa.Array,
        *,
        moved: Mapping[Place, pa.Table] | None = None,
    ) -> pa.Table:
        """Return rows of a table: from files, only those with one of ``values`` in ``column``."""
        columns = SOURCES[name]
        parts = []
        for file in self.files:
            if file.table != name:
                continue
            rows = (moved or {}).get(read_place(file.path))
            if rows is None:
                where = self._find(name, column, values) if file.rows > _FILTERED_ROWS else None
                rows = read_rows(self.lake_dir, file, columns, where)
            parts.append(filter_rows(rows.select(columns), column, values))
        if name in self.at_hand and self.at_hand[name].num_rows:
            parts.append(self.at_hand[name].select(columns))
        return pa.concat_tables(parts) if parts else _make_empty(name)

    def _find(self, name: str, column: str, values: pa.Array) -> pc.Expression:
        """Return the filter for reading the rows of a file."""
        where = pc.field(column).isin(values)
        if name in _LT_COLUMNS:
            lt = pc.field(_LT_COLUMNS[name])
            where = (lt >= self.lts[0]) & (lt <= self.lts[1]) & where
        return where


@cache
def _make_empty(name: str) -> pa.Table:
    """Return an empty table of the columns that classification reads; slow, hence cached."""
    return TABLES[name].empty.select(SOURCES[name])


def _add_cells(
    lake_dir: Path,
    files: Sequence[DataFile],
    rows: Rows,
    at_hand: Mapping[str, pa.Table],
    hashes: pa.Array,
) -> Rows:
    """Return rows with the data cells that rules may read."""
    if not len(hashes):
        return rows
    columns = ("hash", "cell")
    where = pc.field("hash").isin(hashes)
    parts = [
        read_rows(lake_dir, file, columns, where)
        for file in files
        if file.table == STATE_CELLS.name
    ]
    if STATE_CELLS.name in at_hand:
        fresh = at_hand[STATE_CELLS.name].select(columns)
        parts.append(fresh.filter(pc.is_in(fresh["hash"], value_set=hashes)))
    tables = [pa.table(part.columns, names=columns) for part in parts]
    return Rows({**rows.tables, STATE_CELLS.name: pa.concat_tables(tables)}) if tables else rows


def _add_init_states(
    lake_dir: Path,
    files: Sequence[DataFile],
    rows: Rows,
    at_hand: Mapping[str, pa.Table],
    sales: pa.Array,
) -> Rows:
    """Return rows with the StateInits of messages to sales and auctions."""
    if not len(sales):
        return rows
    where = pc.field("destination").isin(sales) & pc.field("init_state").is_valid()
    parts = [
        read_rows(lake_dir, file, INIT_STATE_COLUMNS, where)
        for file in files
        if file.table == MESSAGES.name
    ]
    if MESSAGES.name in at_hand:
        parts.append(at_hand[MESSAGES.name].filter(where).select(INIT_STATE_COLUMNS))
    tables = [pa.table(part.columns, names=INIT_STATE_COLUMNS) for part in parts]
    return Rows({**rows.tables, INIT_STATES: pa.concat_tables(tables)}) if tables else rows


def _overlaps(place: Place, first: int, last: int) -> bool:
    return not place.is_open and place.first <= last and place.last >= first

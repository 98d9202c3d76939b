"""Gathers the rows of traces, and the facts of other accounts, from the lake and from a commit.

A trace may span a day: of the files of its blocks only those with some of its transactions are
read, and only its own rows are kept. The commit is in memory and is not copied: a process that
classifies some of the traces selects their rows from it.

Rules ask for the interfaces of any account. Those of accounts that are active after the trace are
in the rows of its own blocks; for others the newest row before the end of the trace is used,
however old. Few traces need any, so the lake is opened only for those.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.action.interface import READERS, Facts, show_address
from tonlake.ingest.derive.action.stored import (
    INIT_STATE_COLUMNS,
    INIT_STATES,
    SOURCES,
    Rows,
    filter_rows,
    list_data_hashes,
    list_sales,
)
from tonlake.lake.account import AccountId, read_raw_address
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.rows import Row, iter_dicts, read_rows
from tonlake.lake.log.place import Place, list_files_between, read_place
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.schema import MESSAGES, STATE_CELLS, TABLES, TRANSACTION_TRACES, TRANSACTIONS
from tonlake.lake.settings import LakeSettings

Asked = tuple[str, int]
FindKnown = Callable[[set[Asked]], Mapping[Asked, Facts]]


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

    ``at_hand`` are the rows, by table, of the range at ``place``, which is not in the lake yet;
    ``moved`` the rows of ``transaction_traces`` that replace those of ranges in the lake.
    """
    if not traces.num_rows:
        return Rows({})
    first, last = pc.min(traces["mc_seqno_start"]).as_py(), pc.max(traces["mc_seqno_end"]).as_py()
    is_all_at_hand = bool(at_hand) and place.first <= first and last <= place.last
    files = [] if is_all_at_hand else list_files_between(state, first, last, *_READ)
    overlaps = not place.is_open and place.first <= last and place.last >= first
    lts = pc.min(traces["start_lt"]).as_py(), pc.max(traces["end_lt"]).as_py()
    gathering = _Gathering(lake_dir, files, at_hand if overlaps else {}, lts)
    ids = traces["trace_id"].unique()
    held = gathering.collect(TRANSACTION_TRACES.name, "trace_id", ids, moved=moved or {})
    members = filter_rows(held, "trace_id", ids)
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
    data_hashes = list_data_hashes(Rows(tables), hashes)
    sales = list_sales(Rows(tables), accounts)
    if len(data_hashes):
        where = pc.field("hash").isin(data_hashes)
        cells = _read_more(near, at_hand, STATE_CELLS.name, ("hash", "cell"), where)
        tables |= {STATE_CELLS.name: pa.concat_tables(cells)} if cells else {}
    if len(sales):
        where = pc.field("destination").isin(sales) & pc.field("init_state").is_valid()
        states = _read_more(near, at_hand, MESSAGES.name, INIT_STATE_COLUMNS, where)
        tables |= {INIT_STATES: pa.concat_tables(states)} if states else {}
    return Rows(tables)


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
        if len(parts) == 1:
            return parts[0]
        return pa.concat_tables(parts) if parts else TABLES[name].empty.select(columns)

    def _find(self, name: str, column: str, values: pa.Array) -> pc.Expression:
        """Return the filter for reading the rows of a file."""
        where = pc.field(column).isin(values)
        if name in _LT_COLUMNS:
            lt = pc.field(_LT_COLUMNS[name])
            where = (lt >= self.lts[0]) & (lt <= self.lts[1]) & where
        return where


def _read_more(
    gathering: _Gathering,
    at_hand: Mapping[str, pa.Table],
    table: str,
    columns: tuple[str, ...],
    where: pc.Expression,
) -> list[pa.Table]:
    """Return some columns of the rows that pass a filter; [] if there is no such table."""
    parts = [
        read_rows(gathering.lake_dir, file, columns, where)
        for file in gathering.files
        if file.table == table
    ]
    if table in at_hand:
        parts.append(at_hand[table].filter(where).select(columns))
    return [pa.table(part.columns, names=columns) for part in parts]


_QUERIES = {
    "jetton_wallets": "from newest_until('jetton_wallets', $workchains, $accounts, $mc_seqnos)",
    "nft_items": "from newest_until('nft_items', $workchains, $accounts, $mc_seqnos)",
    "nft_sales": "from newest_until('nft_sales', $workchains, $accounts, $mc_seqnos)",
    "dex_pools": "from newest_until('dex_pools', $workchains, $accounts, $mc_seqnos)",
    "multisig_orders": "from newest_until('multisig_orders', $workchains, $accounts, $mc_seqnos)",
}
"""Queries for the newest row of each account up to the block of the lookup."""


class KnownContracts:
    """A lake, and the rows of a range that is about to be committed to it."""

    def __init__(
        self,
        lake_dir: Path,
        settings: LakeSettings,
        state: LogState,
        fresh: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """Combine the lake in a state with the rows that are not in it yet, by table."""
        self._lake_dir, self._settings, self._state = lake_dir, settings, state
        self._fresh = fresh or {}

    def find(self, asked: set[Asked]) -> dict[Asked, Facts]:
        """Return the last facts of raw addresses, each as of a masterchain block, if it has any."""
        newest: dict[Asked, dict[str, Row]] = {}
        known = {key: parsed for key in asked if (parsed := read_raw_address(key[0])) is not None}
        for key, name, row in (*self._read_lake(known), *self._read_fresh(known)):
            rows = newest.setdefault(key, {})
            if name not in rows or rows[name]["mc_seqno"] < row["mc_seqno"]:
                rows[name] = row
        facts: dict[Asked, Facts] = {key: {} for key in newest}
        for key, rows in newest.items():
            for name, row in rows.items():
                facts[key] |= READERS[name](row, key[0])
        return facts

    def _read_lake(self, asked: Mapping[Asked, AccountId]) -> Iterator[tuple[Asked, str, Row]]:
        """Yield the newest row of each account in each table."""
        if not self._state.number or not asked:
            return
        parameters = {
            "workchains": [workchain for workchain, _ in asked.values()],
            "accounts": [account for _, account in asked.values()],
            "mc_seqnos": [mc_seqno for _, mc_seqno in asked],
        }
        snapshot = Snapshot(self._lake_dir, self._state)
        texts = "\n".join(_QUERIES.values())
        with connect(snapshot, self._settings, statement=texts) as connection:
            for name, statement in _QUERIES.items():
                cursor = connection.execute(statement, parameters)
                columns = [column[0] for column in cursor.description or ()]
                for values in cursor.fetchall():
                    row = dict(zip(columns, values, strict=True))
                    yield (_show_account(row), row["asked_at"]), name, row

    def _read_fresh(self, asked: Mapping[Asked, AccountId]) -> Iterator[tuple[Asked, str, Row]]:
        """Yield the rows of each account in the new range, up to the block of the lookup."""
        ends: dict[str, list[int]] = {}
        for address, mc_seqno in asked:
            ends.setdefault(address, []).append(mc_seqno)
        accounts = sorted({account for _, account in asked.values()})
        for name in _QUERIES:
            rows = self._fresh.get(name)
            if rows is None or not rows.num_rows:
                continue
            ids = pa.array(accounts, rows["account"].type)
            for row in iter_dicts(rows.filter(pc.is_in(rows["account"], value_set=ids))):
                for mc_seqno in ends.get(_show_account(row), ()):
                    if row["mc_seqno"] <= mc_seqno:
                        yield (_show_account(row), mc_seqno), name, row


def _show_account(row: Row) -> str:
    return show_address(row["workchain"], row["account"]) or ""

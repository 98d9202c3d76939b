"""Gathers the rows of traces, and reads traces and the interfaces of their accounts from them.

Every account with a transaction in a trace has a new state in the blocks of that trace, so its
interfaces are in the rows of the same blocks. Rules ask for the interfaces of any account: for
those that are not active after the trace, the newest row before the end of the trace is used,
however old. Few traces need any, so the lake is opened only for those.

A trace may span a day: of the files of its blocks only those with some of its transactions are
read, and only its own rows are kept. The commit is in memory and is not copied: a process that
classifies some of the traces selects their rows from it.
"""

import base64
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.action.interface import (
    NAMES_BY_CODE,
    READERS,
    Facts,
    Interfaces,
    show_address,
)
from tonlake.ingest.derive.action.model import Message, Trace, Transaction
from tonlake.ingest.derive.action.protocol import telegram
from tonlake.lake.account import AccountId, read_raw_address
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.rows import (
    Load,
    Row,
    filter_rows,
    iter_dicts,
    iter_tuples,
    load_from,
    read_rows,
)
from tonlake.lake.log.place import Place, list_files_between, read_place
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    DEX_POOLS,
    JETTON_WALLETS,
    MESSAGES,
    MULTISIG_ORDERS,
    NFT_ITEMS,
    NFT_SALES,
    STATE_CELLS,
    TABLES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
)
from tonlake.lake.settings import LakeSettings

TRANSACTION_COLUMNS = (
    *("hash", "workchain", "account", "lt", "now", "mc_seqno", "orig_status", "end_status"),
    *("descr", "aborted", "compute_exit_code", "compute_skip_reason"),
)
MESSAGE_COLUMNS = (
    *("tx_hash", "direction", "msg_index", "msg_hash", "source_workchain", "source"),
    *("destination_workchain", "destination", "value", "value_extra_currencies", "created_lt"),
    *("created_at", "bounce", "opcode", "body"),
)
TRACE_COLUMNS = ("hash", "trace_id", "mc_seqno")
_OF_TRACE = tuple(name for name in Trace.__struct_fields__ if name != "transactions")
SOURCES: Mapping[str, tuple[str, ...]] = {
    TRANSACTIONS.name: TRANSACTION_COLUMNS,
    MESSAGES.name: MESSAGE_COLUMNS,
    TRANSACTION_TRACES.name: TRACE_COLUMNS,
    JETTON_WALLETS.name: JETTON_WALLETS.names,
    NFT_ITEMS.name: NFT_ITEMS.names,
    NFT_SALES.name: NFT_SALES.names,
    DEX_POOLS.name: DEX_POOLS.names,
    MULTISIG_ORDERS.name: ("workchain", "account", "mc_seqno", "signers"),
    ACCOUNT_STATES.name: ("workchain", "account", "mc_seqno", "code_hash", "data_hash"),
}
"""Columns that classification reads, by table."""

_READS_DATA = pa.array([0x499A9262, 0x0168D4B7, 0xF5C5BAA3 - (1 << 32)], pa.int32())
"""Opcodes (signed) of messages to contracts whose data the rules read: JVault's."""

INIT_STATES = "init_states"
INIT_STATE_COLUMNS = ("msg_hash", "init_state")
"""Columns of ``messages`` with the StateInit of a sale or an auction."""

_OF_TOKENS = frozenset((0x0F8A7EA5, 0x178D4519, 0x595F07BC, 0x5FCC3D14))
"""Opcodes of calls to jetton wallets and NFT items: transfers and burns. TEP-74, TEP-62."""

_KNOWN_CODE = pa.array(list(NAMES_BY_CODE), pa.binary(32))

_REFS_MASK = 0xF8
_OPCODE_MASK = 0xFFFFFFFF


class Rows(NamedTuple):
    """Rows of the tables of ``SOURCES``, which include those of some traces."""

    tables: Mapping[str, pa.Table]

    def take(self, name: str) -> pa.Table:
        """Return the rows of a table; empty if the table is missing."""
        return self.tables.get(name, TABLES[name].empty).select(SOURCES[name])

    def narrow(self, traces: pa.Table) -> "Rows":
        """Return only the rows of the transactions of ``traces``, and of their accounts then."""
        ids = traces["trace_id"].combine_chunks()
        mine = filter_rows(self.take(TRANSACTION_TRACES.name), "trace_id", ids)
        hashes = mine["hash"].combine_chunks()
        transactions = filter_rows(self.take(TRANSACTIONS.name), "hash", hashes)
        tables = {
            TRANSACTION_TRACES.name: mine,
            TRANSACTIONS.name: transactions,
            MESSAGES.name: filter_rows(self.take(MESSAGES.name), "tx_hash", hashes),
        }
        accounts = transactions["account"].unique()
        starts, seqnos = traces["mc_seqno_start"], transactions["mc_seqno"]
        blocks = pa.chunked_array([*starts.chunks, *seqnos.chunks], starts.type).unique()
        for name, rows in self.tables.items():
            if name in (STATE_CELLS.name, INIT_STATES):
                tables[name] = rows
            elif name not in tables:
                near = filter_rows(rows.select(SOURCES[name]), "mc_seqno", blocks)
                tables[name] = filter_rows(near, "account", accounts)
        return Rows(tables)


_FEW_ROWS = 200
"""Up to this many transactions, to read those of other traces takes less time than to filter."""


def read_stored(traces: pa.Table, rows: Rows) -> Iterator[tuple[Trace, Interfaces]]:
    """Yield complete traces (rows of ``traces``) with the interfaces of their accounts."""
    if rows.take(TRANSACTIONS.name).num_rows > _FEW_ROWS:
        rows = rows.narrow(traces)
    mine, transactions = rows.take(TRANSACTION_TRACES.name), rows.take(TRANSACTIONS.name)
    trace_of: dict[bytes, bytes] = dict(iter_tuples(mine, ("hash", "trace_id")))
    members: dict[bytes | None, list[Transaction]] = {}
    init_states = rows.tables.get(INIT_STATES)
    inits = {} if init_states is None else dict(iter_tuples(init_states, INIT_STATE_COLUMNS))
    for transaction in _make_transactions(transactions, rows.take(MESSAGES.name), inits):
        members.setdefault(trace_of.get(transaction.tx_hash), []).append(transaction)
    facts = read_facts(rows)
    for row in iter_dicts(traces):
        own = sorted(members.get(row["trace_id"], ()), key=lambda each: (each.lt, each.account))
        if own:
            chosen = _choose(facts, own, row["mc_seqno_start"])
            trace = Trace(transactions=own, **{name: row[name] for name in _OF_TRACE})
            yield trace, Interfaces(chosen)


def list_data_hashes(rows: Rows, tx_hashes: pa.Array) -> pa.Array:
    """Return the hashes of the data cells that rules may read in traces of some transactions."""
    messages = rows.take(MESSAGES.name)
    may_read = filter_rows(messages, "opcode", _READS_DATA), telegram.find_rotations(messages)
    parts = [filter_rows(each, "tx_hash", tx_hashes) for each in may_read if each.num_rows]
    if not parts:
        return pa.array([], pa.binary(32))
    theirs = pa.concat_tables(parts)
    found = filter_rows(rows.take(ACCOUNT_STATES.name), "account", theirs["destination"].unique())
    return found["data_hash"].drop_null().unique()


def _make_transactions(
    transactions: pa.Table, messages: pa.Table, init_states: Mapping[bytes, bytes]
) -> Iterator[Transaction]:
    incoming: dict[bytes, Message] = {}
    outgoing: dict[bytes, list[tuple[int, Message]]] = {}
    for tx_hash, direction, index, msg_hash, *fields in iter_tuples(messages, MESSAGE_COLUMNS):
        *ends, value, currencies, created_lt, created_at, bounce, opcode, boc = fields
        message = Message(
            msg_hash=msg_hash,
            source=show_address(*ends[:2]),
            destination=show_address(*ends[2:]),
            value=value,
            extra_currencies=json.loads(currencies) if currencies else {},
            opcode=None if opcode is None else opcode & _OPCODE_MASK,
            created_lt=created_lt,
            created_at=created_at,
            bounce=bounce,
            boc=boc,
            init_state=init_states.get(msg_hash),
        )
        if direction == "in":
            incoming[tx_hash] = message
        else:
            outgoing.setdefault(tx_hash, []).append((index, message))
    for tx_hash, workchain, account, *fields in iter_tuples(transactions, TRANSACTION_COLUMNS):
        lt, now, mc_seqno, orig_status, end_status, descr, aborted, exit_code, skip_reason = fields
        out = outgoing.get(tx_hash, [])
        if len(out) > 1:
            out.sort(key=lambda each: each[0])
        yield Transaction(
            tx_hash=tx_hash,
            account=show_address(workchain, account) or "",
            lt=lt,
            now=now,
            mc_seqno=mc_seqno,
            orig_status=orig_status,
            end_status=end_status,
            aborted=bool(aborted),
            is_tick_tock=descr == "tick_tock",
            exit_code=exit_code,
            skip_reason=skip_reason,
            in_msg=incoming.get(tx_hash),
            out_msgs=[message for _index, message in out],
        )


History = dict[str, list[tuple[int, str, Facts]]]
"""Facts of accounts: by account, the masterchain block of the state, the interface, its fields."""


def read_facts(rows: Rows) -> History:
    """Return the facts of all accounts, in the order of their states."""
    history: History = {}
    for name, read in READERS.items():
        if name not in rows.tables or not rows.tables[name].num_rows:
            continue
        found = rows.take(name)
        if name == ACCOUNT_STATES.name:
            found = filter_rows(found, "code_hash", _KNOWN_CODE)
        for row in iter_dicts(found):
            address = show_address(row["workchain"], row["account"]) or ""
            for interface, facts in read(row, address).items():
                history.setdefault(address, []).append((row["mc_seqno"], interface, facts))
    for address, mc_seqno, facts in _read_data(rows):
        history.setdefault(address, []).append((mc_seqno, "data_boc", facts))
    for states in history.values():
        states.sort(key=lambda each: each[0])
    return history


def _read_data(rows: Rows) -> Iterator[tuple[str, int, Facts]]:
    """Yield the available root cells of data, each as a bag without its children."""
    cells = rows.tables.get(STATE_CELLS.name)
    if cells is None:
        return
    by_hash = dict(iter_tuples(cells, ("hash", "cell")))
    for row in iter_dicts(rows.take(ACCOUNT_STATES.name)):
        cell = by_hash.get(row["data_hash"])
        if cell is not None:
            bag = serialize_single(bytes((cell[0] & _REFS_MASK,)) + cell[1:])
            address = show_address(row["workchain"], row["account"]) or ""
            yield address, row["mc_seqno"], {"data_boc": base64.b64encode(bag).decode()}


def _choose(
    history: History, transactions: Iterable[Transaction], mc_seqno_start: int
) -> dict[str, Facts]:
    """Return the facts of each account as of its last transaction in a trace.

    Rows of recorded traces belong to the trace's first block. Rows of other blocks are ignored,
    since they are available or not depending on how blocks are grouped into commits. An account is
    left out if a token may be gone: it is not active after the trace, and was called as one. It is
    then looked up in the lake.
    """
    chosen: dict[str, Facts] = {}
    own: dict[str, set[int]] = {}
    for each in transactions:
        own.setdefault(each.account, {mc_seqno_start}).add(each.mc_seqno)
        called = each.in_msg is not None and each.in_msg.opcode in _OF_TOKENS
        if each.end_status == "active" or not called:
            chosen.setdefault(each.account, {})
        else:
            chosen.pop(each.account, None)
    for account, mc_seqnos in own.items():
        for at, interface, facts in history.get(account, ()):
            if at in mc_seqnos:
                chosen.setdefault(account, {})[interface] = facts
    return chosen


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
    first = int(traces["mc_seqno_start"].to_numpy().min())
    last = int(traces["mc_seqno_end"].to_numpy().max())
    is_all_at_hand = bool(at_hand) and place.first <= first and last <= place.last
    files = [] if is_all_at_hand else list_files_between(state, first, last, *_READ)
    overlaps = not place.is_open and place.first <= last and place.last >= first
    fresh = {name: rows for name, rows in at_hand.items() if overlaps and rows.num_rows}
    gathering = _Gathering(lake_dir, files, fresh, traces, load_from(lake_dir))
    ids = traces["trace_id"].combine_chunks()
    held = gathering.collect(TRANSACTION_TRACES.name, "trace_id", ids, moved=moved or {})
    members = filter_rows(held, "trace_id", ids)
    near = gathering.narrow(members)
    hashes = members["hash"].combine_chunks()
    transactions = near.collect(TRANSACTIONS.name, "hash", hashes)
    tables = {TRANSACTION_TRACES.name: members, TRANSACTIONS.name: transactions}
    present = fresh.keys() | {file.table for file in near.files}
    accounts = pa.array([], pa.binary(32))
    if near.files or NFT_SALES.name in present:
        of_each = transactions.select(("hash", "account"))
        accounts = filter_rows(of_each, "hash", hashes)["account"].unique()
    for name in (SOURCES.keys() & present) - tables.keys():
        key = ("tx_hash", hashes) if name == MESSAGES.name else ("account", accounts)
        tables[name] = near.collect(name, *key)
    data_hashes = list_data_hashes(Rows(tables), hashes)
    if len(data_hashes):
        where = pc.field("hash").isin(data_hashes)
        cells = _read_more(near, at_hand, STATE_CELLS.name, ("hash", "cell"), where)
        tables |= {STATE_CELLS.name: pa.concat_tables(cells)} if cells else {}
    if NFT_SALES.name in tables and tables[NFT_SALES.name].num_rows:
        # Rules read the StateInit of sales and auctions.
        sales = filter_rows(tables[NFT_SALES.name], "account", accounts)["account"].unique()
        where = pc.field("destination").isin(sales) & pc.field("init_state").is_valid()
        states = _read_more(near, at_hand, MESSAGES.name, INIT_STATE_COLUMNS, where)
        tables |= {INIT_STATES: pa.concat_tables(states)} if states else {}
    return Rows(tables)


class _Gathering(NamedTuple):
    """Sources of rows of some traces: files, and rows in memory; ``load`` keeps packs."""

    lake_dir: Path
    files: Sequence[DataFile]
    at_hand: Mapping[str, pa.Table]
    traces: pa.Table
    load: Load

    def narrow(self, members: pa.Table) -> "_Gathering":
        """Restrict the files to those with rows of the masterchain blocks of some transactions."""
        if not self.files:
            return self
        places = {read_place(file.path) for file in self.files}
        ordered = sorted(members["mc_seqno"].unique().to_pylist())
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
                rows = read_rows(self.lake_dir, file, columns, where, self.load)
            parts.append(filter_rows(rows.select(columns), column, values))
        if name in self.at_hand and self.at_hand[name].num_rows:
            parts.append(self.at_hand[name].select(columns))
        return pa.concat_tables(parts) if parts else TABLES[name].empty.select(columns)

    def _find(self, name: str, column: str, values: pa.Array) -> pc.Expression:
        """Return the filter for reading the rows of a file."""
        where = pc.field(column).isin(values)
        if name in _LT_COLUMNS:
            lt = pc.field(_LT_COLUMNS[name])
            first, last = pc.min(self.traces["start_lt"]), pc.max(self.traces["end_lt"])
            where = (lt >= first.as_py()) & (lt <= last.as_py()) & where
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
        read_rows(gathering.lake_dir, file, columns, where, gathering.load)
        for file in gathering.files
        if file.table == table
    ]
    if table in at_hand:
        parts.append(at_hand[table].filter(where).select(columns))
    return [pa.table(part.columns, names=columns) for part in parts]


_QUERIES = {
    table.name: f"from newest_until('{table.name}', $workchains, $accounts, $mc_seqnos)"
    for table in (JETTON_WALLETS, NFT_ITEMS, NFT_SALES, DEX_POOLS, MULTISIG_ORDERS)
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

"""Makes the events of streams from the rows of one commit, however old the commit is.

Rows come in chunks of blocks from the files that the commit added, or, after these were compacted
and removed, from the files of the newest snapshot. The event of a trace is sent when its last
transaction is committed. Transactions of earlier blocks are cached from when those were read; after
a restart the earlier blocks are read again. Only traces that span many commits are read from the
newest snapshot.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow.compute as pc
from msgspec import Raw

from tonlake.api.request.call import Call, parse_hash
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.api.stream.event import (
    ACTIONS,
    FINALITIES,
    FINALIZED,
    JETTONS,
    POSITIONS_PER_TYPE,
    STATES,
    TRACES,
    TRANSACTIONS,
    TYPES,
    Cursor,
    Event,
    cut,
    make_action_event,
    make_event,
    make_trace_event,
    name_trace,
)
from tonlake.api.text.encoding import encode_account, encode_number, render_raw
from tonlake.api.v3.layout.build import make_builder
from tonlake.api.v3.layout.transaction import AccountState, Transaction
from tonlake.api.v3.resource.action import Action, render_action
from tonlake.api.v3.resource.answer import Trace, head_of, render_trace
from tonlake.api.v3.resource.transaction import render_transaction, write_records
from tonlake.api.v3.route.trace import TracesQuery, answer_traces
from tonlake.lake import schema
from tonlake.lake.cache import Cache
from tonlake.lake.errors import BlocksLacking, LakeCorrupt
from tonlake.lake.file.rows import read_rows
from tonlake.lake.index.segment.declared import Record, make_record
from tonlake.lake.log.place import read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import Commit, DataFile, read_commit, read_state
from tonlake.lake.schema.action_type import expand_names
from tonlake.queries.reader import Row

CHUNK_TRANSACTIONS = 2_000

KEPT_CHUNKS, KEPT_COMMITS = 2, 256
"""Cached chunks, whose rows all types of events are made from, and cached commits."""

_FINALIZED = b'"finalized"}'
"""The end of a transaction's JSON."""

_LEFT_OUT = ("boc", "time")
"""Columns of transactions that no event shows."""


class Chunk(NamedTuple):
    """Masterchain blocks ``first..last`` of a commit."""

    commit: int
    first: int
    last: int


class CommitRows:
    """Reads the rows of commits from the files of a lake; ``read`` is for one thread at a time."""

    finality = FINALIZED
    """Of the blocks, an index in ``FINALITIES``."""

    def __init__(self, lake_dir: Path) -> None:
        self._lake_dir = lake_dir
        self._find_commit = lru_cache(KEPT_COMMITS)(lambda at: read_commit(lake_dir, at)[0])
        self._tables: Callable[[Chunk], dict[str, list[Row]]] = lru_cache(KEPT_CHUNKS)(lambda _: {})
        self.records = lru_cache(KEPT_CHUNKS)(self._join_rows)

    def find_undone(self, number: int) -> Range | None:
        """Return the blocks that a commit removed from the lake, or None if it is not an undo."""
        commit = self._find_commit(number)
        return (commit.first_mc_seqno, commit.last_mc_seqno) if commit.undone else None

    def list_chunks(self, number: int) -> list[Chunk]:
        """Return the blocks that a commit added as chunks, in order; [] if it added none."""
        commit = self._find_commit(number)
        if not commit.has_blocks:
            return []
        first, last = commit.first_mc_seqno, commit.last_mc_seqno
        rows = sum(file.rows for file in commit.added if file.table == schema.TRANSACTIONS.name)
        step = max(1, (last - first + 1) * CHUNK_TRANSACTIONS // max(rows, CHUNK_TRANSACTIONS))
        return [
            Chunk(number, start, min(start + step - 1, last))
            for start in range(first, last + 1, step)
        ]

    def check_kept(self, chunk: Chunk) -> None:
        """Raise BlocksLacking if files are gone because blocks were pruned: few rows are kept."""
        stored = {file.stored for file in self._find_commit(chunk.commit).added}
        if all((self._lake_dir / path).exists() for path in stored):
            return
        if chunk.first <= (pruned := read_state(self._lake_dir).last_pruned):
            raise BlocksLacking(
                f"the lake has been pruned up to masterchain block {pruned}, and events were asked"
                f" for from {chunk.first} on: subscribe again without last_event_id"
            )

    def read(self, chunk: Chunk, table: str) -> list[Row]:
        """Return the rows of a table for the blocks of ``chunk``, in the order of its files.

        Rows never change, so those of the last chunks are cached.
        """
        tables = self._tables(chunk)
        if table not in tables:
            tables[table] = self._read_table(chunk, table)
        return tables[table]

    def _join_rows(self, chunk: Chunk) -> dict[bytes, Record]:
        """Return the transactions of ``chunk`` by hash, with the ids of their traces if known."""
        traces = {
            row["hash"]: row["trace_id"] for row in self.read(chunk, schema.TRANSACTION_TRACES.name)
        }
        rows = self.read(chunk, schema.TRANSACTIONS.name)
        messages: dict[bytes, list[Row]] = {}
        for row in rows:
            row["trace_id"], messages[row["hash"]] = traces.get(row["hash"]), []
        for message in self.read(chunk, schema.MESSAGES.name):
            messages[message["tx_hash"]].append(message)
        states = {
            (row["workchain"], row["account"], row["hash"]): row
            for row in self.read(chunk, schema.ACCOUNT_STATES.name)
        }
        return {row["hash"]: make_record(row, messages[row["hash"]], states) for row in rows}

    def _read_table(self, chunk: Chunk, table: str) -> list[Row]:
        own = _list_own(self._find_commit(chunk.commit), table)
        if all((self._lake_dir / file.stored).exists() for file in own):
            try:
                return list(self._read_files(own, chunk))
            except LakeCorrupt:
                # The file may just have been removed: then the newest snapshot does not list it.
                newest = self._list_newest(chunk, table)
                if any(file in newest for file in own):
                    raise
        column = _name_seqno(table)
        undone = [
            range(one.first_mc_seqno, one.last_mc_seqno + 1)
            for one in read_state(self._lake_dir).undoings
            if one.commit > chunk.commit
        ]
        # Rows now at the seqnos of undone blocks belong to other blocks.
        return [
            row
            for row in self._read_files(self._list_newest(chunk, table), chunk)
            if not any(row[column] in gone for gone in undone)
        ]

    def _list_newest(self, chunk: Chunk, table: str) -> list[DataFile]:
        """Return the files of the newest snapshot that may have rows of the blocks."""
        found = []
        for file in read_state(self._lake_dir).files:
            if file.table == table:
                place = read_place(file.path)
                if not place.is_open and place.first <= chunk.last and place.last >= chunk.first:
                    found.append(file)
        return found

    def _read_files(self, files: Sequence[DataFile], chunk: Chunk) -> Iterator[Row]:
        for file in files:
            columns = schema.TABLES[file.table].names
            if file.table == schema.TRANSACTIONS.name:
                columns = tuple(name for name in columns if name not in _LEFT_OUT)
            seqno = pc.field(_name_seqno(file.table))
            where = (seqno >= chunk.first) & (seqno <= chunk.last)
            place = read_place(file.path)
            # A file that begins at 1 also has the zero state.
            is_whole = chunk.first <= place.first > 1 and chunk.last >= place.last
            rows = read_rows(self._lake_dir, file, columns, None if is_whole else where)
            yield from rows.to_pylist()


def _name_seqno(table: str) -> str:
    return "mc_seqno_end" if table == schema.TRACES.name else "mc_seqno"


def _list_own(commit: Commit, table: str) -> list[DataFile]:
    """Return the files of a table with the rows of the commit's own blocks."""
    span = commit.first_mc_seqno, commit.last_mc_seqno
    return [
        file for file in commit.added if file.table == table and read_place(file.path)[:2] == span
    ]


place_of = itemgetter("lt", "workchain", "account")
"""The sort key of transactions."""

KEPT_NORMS = 50_000
"""Cached traces with the hash by which clients name them."""

TRACES_AT_ONCE = 4_000
"""Most transactions of the traces read per query, unless one trace has more."""

NEAR_COMMITS = 100
"""A trace that began more commits ago is read from the newest snapshot."""

KEPT_TRANSACTIONS = 10_000
"""Approximate size of the cache of transactions, for traces that are not complete."""

_ALL_ACTIONS = expand_names(("latest",))


class _Member(NamedTuple):
    """A transaction of a trace: its row of ``transaction_traces``, and its JSON struct."""

    row: Row
    written: Transaction


Members = dict[bytes, list[_Member]]
"""Transactions by trace id."""


class EventMaker:
    """Makes the events of each type from the rows of a chunk."""

    def __init__(self, rows: CommitRows, holder: SnapshotHolder, settings: Settings) -> None:
        self._rows = rows
        self._holder = holder
        self._settings = settings
        self.norms: OrderedDict[bytes, bytes] = OrderedDict()
        self._kept: Cache[Chunk, Members] = Cache(KEPT_TRANSACTIONS, _weigh)
        self._makers: dict[str, Callable[[Chunk], Iterator[tuple[int, Event]]]] = {
            TRANSACTIONS: self._make_transactions,
            STATES: self._make_states,
            JETTONS: self._make_jettons,
            TRACES: self._make_traces,
            ACTIONS: self._make_actions,
        }

    def make(self, chunk: Chunk, kind: str) -> list[Event]:
        """Return the events of type ``kind``, in order; their cursors are reproducible."""
        events = []
        counts: dict[int, int] = {}
        start = TYPES.index(kind) * POSITIONS_PER_TYPE
        for mc_seqno, event in self._makers[kind](chunk):
            counts[mc_seqno] = place = counts.get(mc_seqno, 0) + 1
            event.cursor = Cursor(chunk.commit, mc_seqno, start + place)
            events.append(event)
        events.sort(key=lambda event: event.cursor or Cursor(0))
        return events

    def _make_transactions(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        records = self._rows.records(chunk)
        norms, finality = self.read_norms(chunk), self._rows.finality
        found = sorted(records.values(), key=lambda record: place_of(record.row))
        texts, _ = write_records(found, self._settings.http.opcode_format)
        for (row, *_), plain in zip(found, texts, strict=True):
            _trace_id, norm = norms.get(row["hash"], (None, None))
            text = plain.removesuffix(_FINALIZED) + msgspec.json.encode(FINALITIES[finality]) + b"}"
            body = {"transactions": [Raw(text)]}
            account = render_raw(row["workchain"], row["account"])
            event = make_event(TRANSACTIONS, body, [account], norm=norm, finality=finality)
            yield row["mc_seqno"], event

    def read_norms(self, chunk: Chunk) -> dict[bytes, tuple[bytes, bytes]]:
        """Return the trace id of each transaction, and the hash by which clients name the trace."""
        records = self._rows.records(chunk)
        traces = {key: one for key, record in records.items() if (one := record.row["trace_id"])}
        for trace_id in traces.keys() & traces.values():
            received = (one for one in records[trace_id].messages if one["direction"] == "in")
            hashes = (one["hash_norm"] or one["msg_hash"] for one in received)
            self.norms[trace_id] = next(hashes, trace_id)
        unknown = set(traces.values()) - self.norms.keys()
        if unknown:
            self.norms.update(zip(unknown, unknown, strict=True))
            found = self._holder.reader(timeout_ms=0, waits=True).rows(
                "v3/trace_norms", trace_ids=list(unknown)
            )
            self.norms.update((row["trace_id"], name_trace(row)) for row in found)
        named = {tx_hash: (trace_id, self.norms[trace_id]) for tx_hash, trace_id in traces.items()}
        while len(self.norms) > KEPT_NORMS:
            self.norms.popitem(last=False)
        return named

    def _make_states(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        for row in self._rows.read(chunk, schema.ACCOUNT_STATES.name):
            account = render_raw(row["workchain"], row["account"])
            body = {"account": account, "state": make_builder(AccountState)((row,))}
            finality = self._rows.finality
            yield row["mc_seqno"], make_event(STATES, body, [account], finality=finality)

    def _make_jettons(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        for row in self._rows.read(chunk, schema.JETTON_WALLETS.name):
            address = render_raw(row["workchain"], row["account"])
            owner = encode_account(row["owner_workchain"], row["owner"])
            jetton = {
                "address": address,
                "balance": encode_number(row["balance"]),
                "owner": owner,
                "jetton": encode_account(row["jetton_workchain"], row["jetton"]),
                "last_transaction_lt": encode_number(row["lt"]),
            }
            body, finality = {"jetton": jetton}, self._rows.finality
            yield row["mc_seqno"], make_event(JETTONS, body, [address, owner], finality=finality)

    def _make_actions(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        rows = self._rows.read(chunk, schema.ACTIONS.name)
        order = ("trace_end_lt", "trace_id", "start_lt", "end_lt", "action_id")
        for row in sorted(rows, key=lambda row: [row[name] for name in order]):
            yield row["mc_seqno"], make_action_event(row, self._rows.finality)

    def _make_traces(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        """Yield the masterchain block and the event of each trace that the chunk completes."""
        self._write_members(chunk)
        rows = [
            row for row in self._rows.read(chunk, schema.TRACES.name) if row["state"] == "complete"
        ]
        rows.sort(key=lambda row: (row["mc_seqno_end"], row["end_lt"], row["trace_id"]))
        actions: dict[bytes, list[Row]] = {row["trace_id"]: [] for row in rows}
        for action in self._rows.read(chunk, schema.ACTIONS.name):
            actions.setdefault(action["trace_id"], []).append(action)
        found = self._compose(chunk, rows)
        finality = self._rows.finality
        rest = [row for row in rows if row["trace_id"] not in found and finality == FINALIZED]
        for batch in cut(rest, itemgetter("transactions"), TRACES_AT_ONCE):
            call = Call(self._settings, self._holder.reader(timeout_ms=0, waits=True))
            ids = tuple(row["trace_id"] for row in batch)
            asked = TracesQuery(trace_id=ids, limit=len(ids), offset=0)
            found |= {parse_hash(one.trace_id): one for one in answer_traces(call, asked).traces}
        for row in rows:
            trace = found.get(row["trace_id"])
            if trace is None:
                continue  # its blocks have been undone since
            trace.actions = _show_actions(actions[row["trace_id"]], finality)
            event = make_trace_event(trace, name_trace(row), finality)
            yield row["mc_seqno_end"], event

    def _compose(self, chunk: Chunk, rows: Sequence[Row]) -> dict[bytes, Trace]:
        """Return the traces whose transactions are all in this chunk or shortly before it."""
        ended = {row["trace_id"]: row for row in rows}
        members: Members = {trace_id: [] for trace_id in ended}
        first = min((row["mc_seqno_start"] for row in rows), default=chunk.first)
        for part in self._list_back(chunk, first):
            for trace_id in part.keys() & ended.keys():
                members[trace_id] += part[trace_id]
        complete: dict[bytes, Trace] = {}
        for trace_id, row in ended.items():
            found = sorted(members[trace_id], key=lambda one: place_of(one.row))
            if len(found) == row["transactions"]:
                shown = ((one.written, head_of(one.written)) for one in found)
                complete[trace_id] = render_trace(row, [one.row for one in found], shown)
        return complete

    def _list_back(self, chunk: Chunk, first: int) -> Iterator[Members]:
        """Yield the transactions of the chunk and of those before it, back to block ``first``.

        Newest first, without blocks that have been undone since.
        """
        yield self._write_members(chunk)
        yield from self.list_before(chunk.commit, chunk.first, first)

    def list_before(self, newest: int, reached: int, first: int) -> Iterator[Members]:
        """Yield the transactions of commits up to ``newest``, from block ``reached`` to ``first``.

        The block ``reached`` itself is not among them.
        """
        undone: list[Range] = []
        for number in range(newest, max(0, newest - NEAR_COMMITS), -1):
            if reached <= first:
                return
            gone = self._rows.find_undone(number)
            if gone is not None:
                undone.append(gone)
                continue
            for one in reversed(self._rows.list_chunks(number)):
                if first <= one.last < reached:
                    yield _leave_out(self._write_members(one), undone)
                    reached = one.first

    def _write_members(self, chunk: Chunk) -> Members:
        """Return the transactions of a chunk by trace id, cached."""
        found = self._kept.get(chunk)
        if found is not None:
            return found
        records, form = self._rows.records(chunk), self._settings.http.opcode_format
        found = {}
        for member in self._rows.read(chunk, schema.TRANSACTION_TRACES.name):
            written = render_transaction(records[member["hash"]], form)
            written.finality = FINALITIES[self._rows.finality]
            found.setdefault(member["trace_id"], []).append(_Member(member, written))
        return self._kept.put(chunk, found)


def _weigh(_chunk: Chunk, members: Members) -> int:
    """Return the weight of transactions in the cache, in which the newest ones always fit."""
    return min(sum(map(len, members.values())), KEPT_TRANSACTIONS)


def _leave_out(members: Members, undone: Sequence[Range]) -> Members:
    """Return the transactions outside of the ``undone`` ranges of masterchain blocks."""
    if not undone:
        return members
    return {
        trace_id: [
            one
            for one in listed
            if not any(first <= one.row["mc_seqno"] <= last for first, last in undone)
        ]
        for trace_id, listed in members.items()
    }


def _show_actions(rows: Sequence[Row], finality: int) -> list[Action]:
    """Return the actions of a trace as shown to clients that know all types."""
    shown = [row for row in rows if _ALL_ACTIONS.isdisjoint(row["ancestor_type"] or ())]
    shown.sort(key=lambda row: (row["start_lt"], row["end_lt"], row["action_id"]))
    actions = [render_action(row) for row in shown]
    for action in actions:
        action.finality = FINALITIES[finality]
    return actions

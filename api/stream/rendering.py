"""Events from rows: what the blocks of a commit did, as clients of a stream are told."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from api.address import render_raw
from api.call import Call
from api.encoding import encode_account, encode_bytes, encode_number
from api.params import Arguments, parse_hash
from api.stream.body import make_action_event, make_event, make_trace_event, write_head
from api.stream.event import (
    ACTIONS,
    FINALIZED,
    JETTONS,
    POSITIONS_PER_TYPE,
    STATES,
    TRACES,
    TRANSACTIONS,
    TYPES,
    Cursor,
    Event,
)
from api.v3.action import Action, render_action
from api.v3.trace import render_trace
from api.v3.trace_routes import TracesQuery, get_traces
from api.v3.transaction import render_state, render_transaction
from api.v3.transaction_layout import find_writer
from ingest.action.version import expand_names
from lake import schema
from lake.schema.account import ACCOUNT_STATES
from lake.schema.action import ACTIONS as ACTIONS_TABLE
from lake.schema.contract import JETTON_WALLETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from api.snapshot import SnapshotHolder
    from api.stream.commits import Chunk, CommitRows
    from api.v3.trace import Trace
    from lake.settings import Settings

Row = dict[str, Any]

KEPT_NORMS = 50_000
"""Traces of which it is remembered which message began them."""

TRACES_AT_ONCE = 4_000
"""Transactions, about, of the traces that are read together."""

_ALL_ACTIONS = expand_names(["latest"])


class EventMaker:
    """Makes the events of one type from the rows of some blocks."""

    def __init__(self, rows: CommitRows, holder: SnapshotHolder, settings: Settings) -> None:
        """Take what is read from."""
        self._rows = rows
        self._holder = holder
        self._settings = settings
        self._norms: OrderedDict[bytes, bytes | None] = OrderedDict()
        self._makers: dict[str, Callable[[Chunk], Iterator[tuple[int, Event]]]] = {
            TRANSACTIONS: self._make_transactions,
            STATES: self._make_states,
            JETTONS: self._make_jettons,
            TRACES: self._make_traces,
            ACTIONS: self._make_actions,
        }

    def make(self, chunk: Chunk, kind: str) -> list[Event]:
        """Return the events of a type, in order; the same whenever they are made.

        Raises:
            LakeError: a file is damaged.
            QueryTimeout: a question about traces took too long.
        """
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
        rows, messages, states = self._read_sources(chunk)
        norms = self._read_norms(chunk, messages)
        write = find_writer(self._settings.opcode_format)
        for row in sorted(rows.values(), key=_place_of):
            row["trace_id"], norm = norms.get(row["hash"], (None, None))
            if write is None:
                form = self._settings.opcode_format
                shown = render_transaction(row, messages[row["hash"]], states, form)
                text = msgspec.json.encode(shown)
            else:
                text = write(row, messages[row["hash"]], states)
            body = write_head(TRANSACTIONS, norm) + b',"transactions":[%b]}' % text
            accounts = frozenset((render_raw(row["workchain"], row["account"]),))
            yield row["mc_seqno"], Event(TRANSACTIONS, body, accounts=accounts, norm=norm)

    def _read_norms(
        self, chunk: Chunk, messages: dict[bytes, list[Row]]
    ) -> dict[bytes, tuple[bytes, bytes | None]]:
        """Return the trace of each transaction, and the message from outside that began it."""
        traces = {
            row["hash"]: row["trace_id"]
            for row in self._rows.read(chunk, schema.TRANSACTION_TRACES.name)
        }
        for tx_hash, trace_id in traces.items():
            if tx_hash == trace_id:
                received = [one for one in messages[tx_hash] if one["direction"] == "in"]
                self._norms[trace_id] = received[0]["hash_norm"] if received else None
        unknown = set(traces.values()) - self._norms.keys()
        if unknown:
            self._norms.update(dict.fromkeys(unknown))
            found = self._holder.reader(timeout_ms=0).rows(
                "v3/trace_norms", trace_ids=list(unknown)
            )
            self._norms.update((row["trace_id"], row["external_hash_norm"]) for row in found)
        named = {tx_hash: (trace_id, self._norms[trace_id]) for tx_hash, trace_id in traces.items()}
        while len(self._norms) > KEPT_NORMS:
            self._norms.popitem(last=False)
        return named

    def _make_states(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        for row in self._rows.read(chunk, ACCOUNT_STATES.name):
            key = row["workchain"], row["account"], row["hash"]
            account = render_raw(row["workchain"], row["account"])
            body = {"account": account, "state": render_state(row, "hash", {key: row})}
            yield row["mc_seqno"], make_event(STATES, body, [account])

    def _make_jettons(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        for row in self._rows.read(chunk, JETTON_WALLETS.name):
            address = render_raw(row["workchain"], row["account"])
            owner = encode_account(row["owner_workchain"], row["owner"])
            jetton = {
                "address": address,
                "balance": encode_number(row["balance"]),
                "owner": owner,
                "jetton": encode_account(row["jetton_workchain"], row["jetton"]),
                "last_transaction_lt": encode_number(row["lt"]),
            }
            yield row["mc_seqno"], make_event(JETTONS, {"jetton": jetton}, [address, owner])

    def _make_actions(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        rows = self._rows.read(chunk, ACTIONS_TABLE.name)
        order = ("trace_end_lt", "trace_id", "start_lt", "end_lt", "action_id")
        for row in sorted(rows, key=lambda row: [row[name] for name in order]):
            yield row["mc_seqno"], make_action_event(row, FINALIZED)

    def _make_traces(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        rows = self._rows.read(chunk, schema.TRACES.name)
        rows = [row for row in rows if row["state"] == "complete"]
        rows.sort(key=lambda row: (row["mc_seqno_end"], row["end_lt"], row["trace_id"]))
        actions: dict[bytes, list[Row]] = {row["trace_id"]: [] for row in rows}
        for action in self._rows.read(chunk, ACTIONS_TABLE.name):
            actions.setdefault(action["trace_id"], []).append(action)
        found = self._render_whole(chunk, rows)
        for batch in _cut([row for row in rows if row["trace_id"] not in found]):
            call = Call(Arguments([]), self._settings, self._holder.reader(timeout_ms=0))
            ids = tuple(row["trace_id"] for row in batch)
            asked = TracesQuery(trace_id=ids, limit=len(ids), offset=0)
            found |= {parse_hash(one.trace_id): one for one in get_traces(call, asked).traces}
        for row in rows:
            trace = found.get(row["trace_id"])
            if trace is None:
                continue  # its blocks were undone since
            trace.actions = _show_actions(actions[row["trace_id"]])
            yield row["mc_seqno_end"], make_trace_event(trace, row["external_hash_norm"])

    def _render_whole(self, chunk: Chunk, rows: Sequence[Row]) -> dict[bytes, Trace]:
        """Return the traces that have all their transactions in these blocks."""
        whole = {row["trace_id"]: row for row in rows if row["mc_seqno_start"] >= chunk.first}
        members: dict[bytes, list[Row]] = {trace_id: [] for trace_id in whole}
        trace_of = {}
        for member in self._rows.read(chunk, schema.TRANSACTION_TRACES.name):
            if member["trace_id"] in whole:
                members[member["trace_id"]].append(member)
                trace_of[member["hash"]] = {"trace_id": member["trace_id"]}
        sources = self._read_sources(chunk)
        form = self._settings.opcode_format
        known = {
            encode_bytes(tx_hash): render_transaction(
                sources.rows[tx_hash] | mine, sources.messages[tx_hash], sources.states, form
            )
            for tx_hash, mine in trace_of.items()
        }
        for listed in members.values():
            listed.sort(key=_place_of)
        return {
            trace_id: render_trace(row, members[trace_id], known) for trace_id, row in whole.items()
        }

    def _read_sources(self, chunk: Chunk) -> _Sources:
        rows = {row["hash"]: row for row in self._rows.read(chunk, schema.TRANSACTIONS.name)}
        messages: dict[bytes, list[Row]] = {tx_hash: [] for tx_hash in rows}
        for message in self._rows.read(chunk, schema.MESSAGES.name):
            messages[message["tx_hash"]].append(message)
        states = {
            (row["workchain"], row["account"], row["hash"]): row
            for row in self._rows.read(chunk, ACCOUNT_STATES.name)
        }
        return _Sources(rows, messages, states)


class _Sources(NamedTuple):
    """What transactions are written from, by their hashes; states by account and hash."""

    rows: dict[bytes, Row]
    messages: dict[bytes, list[Row]]
    states: dict[tuple[int, bytes, bytes], Row]


def _show_actions(rows: Sequence[Row]) -> list[Action]:
    """Return the actions of one trace that are shown to who knows all types."""
    shown = [row for row in rows if _ALL_ACTIONS.isdisjoint(row["ancestor_type"] or ())]
    shown.sort(key=lambda row: (row["start_lt"], row["end_lt"], row["action_id"]))
    return [render_action(row) for row in shown]


def _place_of(row: Row) -> tuple[int, int, bytes]:
    """Return by what transactions are ordered."""
    return row["lt"], row["workchain"], row["account"]


def _cut(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows of traces in lists of not too many transactions together."""
    batch: list[Row] = []
    for row in rows:
        if batch and sum(one["transactions"] for one in [*batch, row]) > TRACES_AT_ONCE:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch

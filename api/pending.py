"""Keeps sent messages until a block contains them or they expire, with their emulated traces.

A message leaves the pool when the lake has the transaction that consumed it, when its account
changed so that it can no longer be accepted, or when it expires.
"""

import logging
import threading
import time
from collections.abc import Callable

import pyarrow as pa
from msgspec import UNSET

from tonlake.api.chain.run import emulate_message
from tonlake.api.errors import ApiError
from tonlake.api.request.call import Call
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.api.stream.event import (
    PENDING,
    TRANSACTIONS,
    Event,
    make_action_event,
    make_event,
    make_trace_event,
    make_withdrawal,
)
from tonlake.api.text.encoding import render_raw
from tonlake.api.v3.layout.transaction import Transaction
from tonlake.api.v3.resource.action import Action, render_action
from tonlake.api.v3.resource.answer import Trace, head_of, render_trace
from tonlake.api.v3.resource.transaction import render_transaction
from tonlake.ingest.derive.action.derivation import classify_traces
from tonlake.ingest.derive.action.stored import SOURCES, Rows
from tonlake.ingest.derive.tvm.call import NotAccepted
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.trace import EmulatedTrace, read_message
from tonlake.ingest.errors import IngestError
from tonlake.lake import schema
from tonlake.lake.errors import LakeError
from tonlake.lake.index.segment.declared import make_record
from tonlake.lake.schema.action_type import expand_names
from tonlake.queries.errors import QueryTimeout
from tonlake.queries.reader import Row

_PENDING = "pending"
_FROM_CHAIN = (schema.TRANSACTIONS.name, schema.MESSAGES.name, schema.TRANSACTION_TRACES.name)


class PendingTrace:
    """The transactions and actions that a message would cause."""

    def __init__(self, call: Call, made: EmulatedTrace) -> None:
        """Store the emulated transactions, and look up their accounts in the lake."""
        steps = made.steps
        root = steps[0].row["hash"]
        self.row = _describe(made)
        self._members: list[Row] = [
            {
                "hash": step.row["hash"],
                "parent_hash": None if step.parent is None else steps[step.parent].row["hash"],
            }
            for step in steps
        ]
        form = call.settings.http.opcode_format
        self.transactions: dict[str, Transaction] = {}
        for step in steps:
            place = {"mc_seqno": None, "block_seqno": None, "shard": None, "trace_id": root}
            shown = render_transaction(make_record(step.row | place, step.messages, {}), form)
            shown.emulated, shown.finality = True, _PENDING
            for name in ("is_tock", "installed"):
                if getattr(shown.description, name) is UNSET:
                    setattr(shown.description, name, False)
            self.transactions[shown.hash] = shown
        self.action_rows = _classify(call, made, self.row)

    @property
    def norm(self) -> bytes:
        """Normalized hash of the message that starts the trace."""
        norm: bytes = self.row["external_hash_norm"]
        return norm

    @property
    def accounts(self) -> frozenset[str]:
        """Raw addresses of the accounts with a transaction."""
        return frozenset(shown.account for shown in self.transactions.values())

    def render(self, types: frozenset[str]) -> Trace:
        """Return the trace with its transactions and the actions of known types."""
        shown = ((each, head_of(each)) for each in self.transactions.values())
        trace = render_trace(self.row, self._members, shown)
        trace.actions = self.render_actions(types)
        return trace

    def render_actions(self, types: frozenset[str]) -> list[Action]:
        """Return the actions of known types, like those of traces on the chain."""
        actions = []
        for row in self.action_rows:
            if row["type"] in types and types.isdisjoint(row["ancestor_type"] or ()):
                action = render_action(row)
                action.finality = _PENDING
                actions.append(action)
        return actions


def _describe(made: EmulatedTrace) -> Row:
    """Return the trace as a row of ``traces``."""
    rows = [step.row for step in made.steps]
    received = next(one for one in made.steps[0].messages if one["direction"] == "in")
    return {
        "trace_id": rows[0]["hash"],
        "external_hash": received["msg_hash"],
        "external_hash_norm": received["hash_norm"],
        "mc_seqno_start": 0,
        "mc_seqno_end": 0,
        "start_lt": rows[0]["lt"],
        "end_lt": max(row["lt"] for row in rows),
        "start_utime": rows[0]["now"],
        "end_utime": max(row["now"] for row in rows),
        "state": _PENDING,
        "transactions": len(rows),
        "messages": len(rows),
        "pending_messages": int(made.cut),
    }


def _classify(call: Call, made: EmulatedTrace, trace: Row) -> list[Row]:
    """Return the rows of ``actions`` of the trace, as ingest would derive them."""
    after = {"mc_seqno": call.reader.snapshot.last_mc_seqno + 1}
    transactions = [step.row | after for step in made.steps]
    tables: dict[str, list[Row]] = {
        schema.TRANSACTIONS.name: transactions,
        schema.MESSAGES.name: [one | after for step in made.steps for one in step.messages],
        schema.TRANSACTION_TRACES.name: [
            {"hash": row["hash"], "trace_id": trace["trace_id"]} | after for row in transactions
        ],
    }
    accounts = sorted({row["account"] for row in transactions})
    for name in SOURCES.keys() - set(_FROM_CHAIN):
        known = call.reader.rows(f"pending/{name}", accounts=accounts)
        known.sort(key=lambda row: row["mc_seqno"])
        # Known contracts apply to the trace if they are dated at its first block.
        tables[name] = [row | {"mc_seqno": trace["mc_seqno_start"]} for row in known]
    rows = Rows(
        {
            name: pa.Table.from_pylist(
                [{column: row[column] for column in SOURCES[name]} for row in listed],
                schema=pa.schema([schema.TABLES[name].arrow.field(one) for one in SOURCES[name]]),
            )
            for name, listed in tables.items()
        }
    )
    complete = [trace | {"state": "complete"} if not made.cut else trace]
    found = classify_traces(pa.Table.from_pylist(complete, schema=schema.TRACES.arrow), rows)
    actions = found.tables[schema.ACTIONS.name].to_pylist()
    return sorted(actions, key=lambda row: (row["start_lt"], row["end_lt"], row["action_id"]))


def make_events(trace: PendingTrace, types: frozenset[str]) -> list[Event]:
    """Return the events of a pending trace, in the same order as for blocks."""
    events = [
        make_event(
            TRANSACTIONS, {"transactions": [one]}, [one.account], norm=trace.norm, finality=PENDING
        )
        for one in trace.transactions.values()
    ]
    events.append(make_trace_event(trace.render(types), trace.norm, PENDING))
    events += [make_action_event(row, PENDING) for row in trace.action_rows]
    return events


EXPIRY_S = 120
"""Seconds until a message that is not in a block expires."""

LOG = logging.getLogger("tonlake.pending")

_EXTERNAL, _STANDARD = "ext_in", "std"


class PendingMessage:
    """A sent message, and its emulated trace as far as that is known."""

    def __init__(self, boc: bytes, first_mc_seqno: int, due_s: float) -> None:
        """Parse an external message to a standard address."""
        read = read_message(boc)
        if (read["kind"], read["destination_kind"]) != (_EXTERNAL, _STANDARD):
            raise IngestError("not an external message to a standard address")
        self.boc = boc
        self.norm: bytes = read["hash_norm"]
        self.target: tuple[int, bytes] = (read["destination_workchain"], read["destination"])
        self.first_mc_seqno = first_mc_seqno
        """First masterchain block that may contain it."""
        self.due_s = due_s
        self.emulated_mc_seqno = 0
        """Masterchain block on whose states it was emulated."""
        self.trace: PendingTrace | None = None


class PendingPool:
    """All pending messages; thread-safe."""

    def __init__(
        self,
        holder: SnapshotHolder,
        settings: Settings,
        tvm: TvmPool,
        publish: Callable[[list[Event]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty; ``publish`` receives events, ``clock`` returns seconds."""
        self._holder = holder
        self._settings = settings
        self._tvm = tvm
        self._publish = publish
        self._clock = clock
        self._messages: dict[bytes, PendingMessage] = {}
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._settled = 0
        self._types = expand_names(("latest",))

    def add(self, call: Call, boc: bytes) -> None:
        """Add a message that was sent, if it is an external message."""
        first = call.reader.snapshot.last_mc_seqno + 1
        due_s = self._clock() + EXPIRY_S
        try:
            message = PendingMessage(boc, first, due_s)
        except IngestError as error:
            LOG.info("the sent message is not kept as pending: %s", error)
            return
        if not self._settings.pending.messages or message.norm in self._messages:
            return
        self._emulate(call, message)
        with self._lock:
            self._messages.setdefault(message.norm, message)
            spare = len(self._messages) - self._settings.pending.messages
            dropped = [next(iter(self._messages.values()))] if spare > 0 else []
        for one in dropped:
            self._drop(one)

    def list_messages(self) -> list[PendingMessage]:
        """Return the messages that are pending now, oldest first."""
        self.settle()
        with self._lock:
            return list(self._messages.values())

    def list_traces(self) -> list[PendingTrace]:
        """Return the emulated traces of the pending messages, as far as they are known."""
        return [one.trace for one in self.list_messages() if one.trace is not None]

    def settle(self) -> None:
        """Remove messages that are in a block, can no longer be accepted, or have expired."""
        with self._settling:
            now_s = self._clock()
            with self._lock:
                kept = list(self._messages.values())
            if kept and self._holder.newest_number() > self._settled:
                try:
                    self._settled = self._compare(kept)
                except (LakeError, QueryTimeout):
                    LOG.exception("pending messages cannot be looked up in the lake")
            for message in kept:
                if message.due_s <= now_s and message.norm in self._messages:
                    self._drop(message)

    def _compare(self, kept: list[PendingMessage]) -> int:
        """Look up messages in the lake, and emulate those whose account changed again.

        Returns the number of the snapshot used, which is the previous one while a newer one is
        being opened.
        """
        call = Call(self._settings, self._holder.reader(timeout_ms=0), tvm=self._tvm)
        landed = call.reader.rows(
            "pending/landed",
            hashes=[message.norm for message in kept],
            first_mc_seqno=min(message.first_mc_seqno for message in kept),
        )
        last = {row[name]: row["mc_seqno"] for row in landed for name in ("msg_hash", "hash_norm")}
        rest = []
        for message in kept:
            if last.get(message.norm, 0) >= message.first_mc_seqno:
                with self._lock:
                    self._messages.pop(message.norm, None)
            else:
                rest.append(message)
        if rest:
            self._emulate_again(call, rest)
        return call.reader.snapshot.number

    def _emulate_again(self, call: Call, messages: list[PendingMessage]) -> None:
        touched = call.reader.rows(
            "pending/touched",
            accounts=[message.target[1] for message in messages],
            first_mc_seqno=min(message.emulated_mc_seqno for message in messages) + 1,
        )
        last = {(row["workchain"], row["account"]): row["mc_seqno"] for row in touched}
        for message in messages:
            if last.get(message.target, 0) > message.emulated_mc_seqno:
                was_accepted = message.trace is not None
                if not self._emulate(call, message) and was_accepted:
                    self._drop(message)

    def _emulate(self, call: Call, message: PendingMessage) -> bool:
        """Emulate a message; return False if its account refuses it, not if the emulation fails."""
        message.emulated_mc_seqno = call.reader.snapshot.last_mc_seqno
        try:
            made = emulate_message(call, message.boc)
            trace = None if isinstance(made, NotAccepted) else PendingTrace(call, made)
        except (ApiError, IngestError, LakeError, QueryTimeout) as error:
            LOG.warning("a pending message cannot be emulated: %s", error)
            return True
        if trace is not None:
            message.trace = trace
            self._publish(make_events(trace, self._types))
        return trace is not None

    def _drop(self, message: PendingMessage) -> None:
        """Remove a message that no block will contain, and publish that."""
        with self._lock:
            self._messages.pop(message.norm, None)
        accounts = frozenset((render_raw(*message.target),))
        if message.trace is not None:
            accounts |= message.trace.accounts
        self._publish([make_withdrawal(message.norm, accounts, PENDING)])

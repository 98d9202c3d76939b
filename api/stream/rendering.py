"""Makes the events of streams from the rows of a commit."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.stream.commits import place_of, read_sources
from tonlake.api.stream.event import (
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
    make_action_event,
    make_event,
    write_head,
)
from tonlake.api.stream.tracing import TraceMaker
from tonlake.api.text.address import render_raw
from tonlake.api.text.encoding import encode_account, encode_number
from tonlake.api.v3.resource.transaction import find_writer, render_state, render_transaction
from tonlake.lake import schema
from tonlake.lake.schema.action import ACTIONS as ACTIONS_TABLE
from tonlake.lake.schema.contract import JETTON_WALLETS
from tonlake.lake.schema.transaction import ACCOUNT_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tonlake.api.request.snapshot import SnapshotHolder
    from tonlake.api.settings import Settings
    from tonlake.api.stream.commits import Chunk, CommitRows

Row = dict[str, Any]

KEPT_NORMS = 50_000
"""Cached traces with the normalised hash of the message that started them."""


class EventMaker:
    """Makes the events of each type from the rows of a chunk."""

    def __init__(self, rows: CommitRows, holder: SnapshotHolder, settings: Settings) -> None:
        """Take the rows, the snapshots and the settings."""
        self._rows = rows
        self._holder = holder
        self._settings = settings
        self._norms: OrderedDict[bytes, bytes | None] = OrderedDict()
        self._makers: dict[str, Callable[[Chunk], Iterator[tuple[int, Event]]]] = {
            TRANSACTIONS: self._make_transactions,
            STATES: self._make_states,
            JETTONS: self._make_jettons,
            TRACES: TraceMaker(rows, holder, settings).make,
            ACTIONS: self._make_actions,
        }

    def make(self, chunk: Chunk, kind: str) -> list[Event]:
        """Return the events of type ``kind``, in order; their cursors are reproducible.

        Raises:
            LakeError: a file is damaged.
            QueryTimeout: a query about traces took too long.
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
        rows, messages, states = read_sources(self._rows, chunk)
        norms = self._read_norms(chunk, messages)
        write = find_writer(self._settings.http.opcode_format)
        for found in sorted(rows.values(), key=place_of):
            trace_id, norm = norms.get(found["hash"], (None, None))
            row = found | {"trace_id": trace_id}
            if write is None:
                form = self._settings.http.opcode_format
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
        """Return the trace id of each transaction, and the hash of the message that started it."""
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

"""An emulated trace as the traces, transactions and actions of version 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import UNSET

from tonlake.api.v3.resource.action import render_action
from tonlake.api.v3.resource.trace import render_trace
from tonlake.api.v3.resource.transaction import render_transaction
from tonlake.ingest.derive.action.derivation import classify_traces
from tonlake.ingest.derive.action.stored import SOURCES, Rows
from tonlake.lake import schema
from tonlake.lake.schema import TABLES
from tonlake.lake.schema.action import ACTIONS

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.v3.layout.transaction import Transaction
    from tonlake.api.v3.resource.action import Action
    from tonlake.api.v3.resource.trace import Trace
    from tonlake.ingest.derive.tvm.trace import EmulatedTrace

Row = dict[str, Any]

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
            shown = render_transaction(step.row | place, step.messages, {}, form)
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
        trace = render_trace(self.row, self._members, self.transactions)
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
                schema=pa.schema([TABLES[name].arrow.field(one) for one in SOURCES[name]]),
            )
            for name, listed in tables.items()
        }
    )
    complete = [trace | {"state": "complete"} if not made.cut else trace]
    found = classify_traces(pa.Table.from_pylist(complete, schema=schema.TRACES.arrow), rows)
    actions = found.tables[ACTIONS.name].to_pylist()
    return sorted(actions, key=lambda row: (row["start_lt"], row["end_lt"], row["action_id"]))

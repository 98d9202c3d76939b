"""Bodies of events: JSON that is the same for all clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.stream.event import ACTIONS, FINALITIES, FINALIZED, TRACES, UNDONE, Cursor, Event
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.resource.action import render_action

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.v3.resource.trace import Trace

Row = dict[str, Any]


def make_trace_event(trace: Trace, norm: bytes | None, finality: int = FINALIZED) -> Event:
    """Return the event of a trace with its transactions and actions."""
    body = {
        "trace_id": trace.trace_id,
        "is_incomplete": trace.is_incomplete,
        "trace": trace.trace,
        "transactions": trace.transactions,
        "actions": trace.actions,
    }
    transactions = trace.transactions or {}
    accounts = {transaction.account for transaction in transactions.values()}
    return make_event(TRACES, body, accounts, norm=norm, finality=finality)


def make_action_event(row: Row, finality: int) -> Event:
    """Return the event of an action, a row of ``actions``."""
    action = render_action(row)
    action.finality = FINALITIES[finality]
    event = make_event(
        ACTIONS,
        {"actions": [action]},
        row["accounts"],
        norm=row["trace_external_hash_norm"],
        finality=finality,
    )
    event.action = row["type"], frozenset(row["ancestor_type"] or ())
    return event


def make_event(
    kind: str,
    body: dict[str, Any],
    accounts: Iterable[str | None],
    *,
    norm: bytes | None = None,
    finality: int = FINALIZED,
) -> Event:
    """Return an event whose fields are ``body``, those that are UNSET left out."""
    given = {name: value for name, value in body.items() if value is not msgspec.UNSET}
    text = write_head(kind, norm, finality) + b"," + msgspec.json.encode(given)[1:]
    named = frozenset(account for account in accounts if account)
    return Event(kind, text, accounts=named, norm=norm, finality=finality)


def make_undoing(number: int, first: int, last: int) -> Event:
    """Return the event that tells of masterchain blocks which a commit took out of the lake."""
    body = {"type": UNDONE, "first_mc_seqno": first, "last_mc_seqno": last}
    return Event(UNDONE, msgspec.json.encode(body), cursor=Cursor(number, first, 1))


def write_head(kind: str, norm: bytes | None, finality: int = FINALIZED) -> bytes:
    """Return how the JSON of an event begins: what all of them say."""
    head = {"type": kind, "finality": FINALITIES[finality]}
    if norm is not None:
        head["trace_external_hash_norm"] = encode_bytes(norm)
    return msgspec.json.encode(head)[:-1]

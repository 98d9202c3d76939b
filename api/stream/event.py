"""An event of a stream: its cursor, filter fields and JSON text."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.api.request.params import INT64_MAX, ConversionError
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.resource.action import render_action

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.api.v3.resource.trace import Trace

TRANSACTIONS, STATES, JETTONS = "transactions", "account_state_change", "jettons_change"
TRACES, ACTIONS, INVALIDATED = "trace", "actions", "trace_invalidated"
UNDONE = "blocks_undone"
"""Masterchain blocks are no longer part of the chain; sent to every client."""

TYPES = (TRANSACTIONS, STATES, JETTONS, TRACES, ACTIONS)
"""Types to subscribe to, in the order in which the events of one block are sent."""

FINALITIES = ("pending", "confirmed", "finalized")
PENDING, FINALIZED = FINALITIES.index("pending"), FINALITIES.index("finalized")

POSITIONS_PER_TYPE = 1 << 32
"""Each type has its own range of positions in a block, so they do not depend on subscriptions."""

_CURSOR = re.compile(r"([0-9]{1,18}):([0-9]{1,18}):([0-9]{1,18})")


class Cursor(NamedTuple):
    """A position in the stream: commit, masterchain block in it, position in the block.

    As an event id it means that this event and all earlier ones were sent.
    """

    commit: int
    mc_seqno: int = 0
    position: int = 0

    def __str__(self) -> str:
        """Return the text that clients send back as ``Last-Event-ID``."""
        return f"{self.commit}:{self.mc_seqno}:{self.position}"


def parse_cursor(text: str) -> Cursor:
    """Parse an event id.

    Raises:
        ConversionError: ``text`` is not an event id.
    """
    match = _CURSOR.fullmatch(text)
    if match is None or max(map(int, match.groups())) > INT64_MAX:
        raise ConversionError(text)
    return Cursor(*map(int, match.groups()))


class Event(msgspec.Struct, eq=False, dict=True):
    """An event: the fields it is filtered by, and its JSON text, shared by all clients."""

    kind: str
    """One of ``TYPES``, ``INVALIDATED`` or ``UNDONE``."""

    body: bytes
    """JSON object."""

    cursor: Cursor | None = None
    """Its position; None for events that are not from a commit, which are never replayed."""

    accounts: frozenset[str] = frozenset()
    """Raw addresses of the accounts involved."""

    norm: bytes | None = None
    """Normalised hash of the external message that started the trace, if known."""

    finality: int = FINALIZED
    """Index in ``FINALITIES``."""

    action: tuple[str, frozenset[str]] | None = None
    """Type of an action, and the types of its ancestors."""

    @cached_property
    def frame(self) -> bytes:
        """The event in server-sent events format, without an id if it has no cursor."""
        start = b"" if self.cursor is None else b"id: %s\n" % str(self.cursor).encode()
        return b"%bdata: %b\n\n" % (start, self.body)

    @cached_property
    def message(self) -> str:
        """The event as WebSocket text, with its id as a field of the object."""
        if self.cursor is None:
            return self.body.decode()
        return f'{{"event_id":"{self.cursor}",{self.body[1:].decode()}'


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
    """Return an event with the fields of ``body``, without those that are UNSET."""
    present = {name: value for name, value in body.items() if value is not msgspec.UNSET}
    text = write_head(kind, norm, finality) + b"," + msgspec.json.encode(present)[1:]
    named = frozenset(account for account in accounts if account)
    return Event(kind, text, accounts=named, norm=norm, finality=finality)


def make_undoing(number: int, first: int, last: int) -> Event:
    """Return the event that a commit removed masterchain blocks from the lake."""
    body = {"type": UNDONE, "first_mc_seqno": first, "last_mc_seqno": last}
    return Event(UNDONE, msgspec.json.encode(body), cursor=Cursor(number, first, 1))


def write_head(kind: str, norm: bytes | None, finality: int = FINALIZED) -> bytes:
    """Return the beginning of an event's JSON: the fields common to all types."""
    head = {"type": kind, "finality": FINALITIES[finality]}
    if norm is not None:
        head["trace_external_hash_norm"] = encode_bytes(norm)
    return msgspec.json.encode(head)[:-1]

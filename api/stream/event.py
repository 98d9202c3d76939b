"""Events of a stream, the subscriptions of its clients, and their bounded backlogs of events."""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.call import (
    INT64_MAX,
    Addresses,
    Arguments,
    ConversionError,
    Converter,
    Hashes,
    Query,
    Text,
    Texts,
    converters_of,
    read_query,
)
from tonlake.api.text.encoding import encode_bytes, render_raw
from tonlake.api.v3.resource.action import render_action
from tonlake.api.v3.resource.answer import Trace
from tonlake.lake.schema.action_type import expand_names
from tonlake.queries.reader import Row

T = TypeVar("T")

TRANSACTIONS, STATES, JETTONS = "transactions", "account_state_change", "jettons_change"
TRACES, ACTIONS, INVALIDATED = "trace", "actions", "trace_invalidated"
UNDONE = "blocks_undone"
"""Masterchain blocks are no longer part of the chain; sent to every client."""

TYPES = (TRANSACTIONS, STATES, JETTONS, TRACES, ACTIONS)
"""Types to subscribe to, in the order in which the events of one block are sent."""

FINALITIES = ("pending", "confirmed", "finalized")
PENDING, CONFIRMED, FINALIZED = range(3)

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
    """Parse an event id; raise ConversionError if ``text`` is not an event id."""
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
    """The hash by which clients name its trace, as ``name_trace`` returns it, if known."""

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


def name_trace(row: Row, prefix: str = "") -> bytes:
    """Return the hash of the message that started a trace, normalised if it can be, or its id."""
    hashes = row[f"{prefix}external_hash_norm"], row[f"{prefix}external_hash"], row["trace_id"]
    name: bytes = next(filter(None, hashes))
    return name


def make_trace_event(trace: Trace, norm: bytes | None, finality: int = FINALIZED) -> Event:
    """Return the event of a trace with its transactions and actions."""
    names = ("trace_id", "is_incomplete", "trace", "transactions", "actions")
    body = {name: getattr(trace, name) for name in names}
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
        norm=name_trace(row, "trace_"),
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
    head = {"type": kind, "finality": FINALITIES[finality]}
    if norm is not None:
        head["trace_external_hash_norm"] = encode_bytes(norm)
    present = {name: value for name, value in body.items() if value is not msgspec.UNSET}
    named = frozenset(account for account in accounts if account)
    return Event(kind, msgspec.json.encode(head | present), None, named, norm, finality)


def make_undoing(number: int, first: int, last: int) -> Event:
    """Return the event that a commit removed masterchain blocks from the lake."""
    body = {"type": UNDONE, "first_mc_seqno": first, "last_mc_seqno": last}
    return Event(UNDONE, msgspec.json.encode(body), cursor=Cursor(number, first, 1))


def make_withdrawal(
    norm: bytes | None, accounts: Iterable[str], finality: int, trace_id: bytes | None = None
) -> Event:
    """Return the event that no block will contain what was sent of a trace."""
    body = {} if trace_id is None else {"trace_id": encode_bytes(trace_id)}
    return make_event(INVALIDATED, body, accounts, norm=norm, finality=finality)


MAX_FILTERS = 1000
"""Maximum addresses, and maximum messages, of one subscription."""


class StreamQuery(Query, frozen=True, kw_only=True):
    """Filters of events; a missing one matches all, except that finality defaults to finalized."""

    types: Texts = ()
    addresses: Addresses = ()
    trace_external_hash_norms: Hashes = ()
    min_finality: Text = None
    action_types: Texts = ()
    supported_action_types: Texts = ()
    last_event_id: Annotated[Cursor | None, Converter(parse_cursor, {"type": "string"})] = None


class Subscription(msgspec.Struct, frozen=True):
    """The filters of a client, resolved."""

    types: frozenset[str]
    accounts: frozenset[str]
    norms: frozenset[bytes]
    min_finality: int
    action_types: frozenset[str]
    known_types: frozenset[str]

    @property
    def is_open(self) -> bool:
        """Whether events are not filtered by account or message."""
        return not (self.accounts or self.norms)

    @property
    def keys(self) -> frozenset[str | bytes | None]:
        """Accounts and norms of the filter; only None if all events match."""
        return frozenset((None,)) if self.is_open else self.accounts | self.norms

    def without(self, gone: "Subscription") -> "Subscription | None":
        """Return what is left without accounts and norms; None if nothing, or if none are named."""
        accounts, norms = self.accounts - gone.accounts, self.norms - gone.norms
        rest = msgspec.structs.replace(self, accounts=accounts, norms=norms)
        return None if gone.is_open or rest.is_open else rest

    def accepts(self, event: Event) -> bool:
        """Return whether an event matches the filters."""
        if event.kind == UNDONE:
            return True
        if event.finality < self.min_finality:
            return False
        if event.kind not in self.types and event.kind != INVALIDATED:
            return False
        if event.action is not None:
            kind, around = event.action
            accepted = self.action_types or self.known_types
            if kind not in accepted or not self.known_types.isdisjoint(around):
                return False
        return (
            self.is_open or event.norm in self.norms or not self.accounts.isdisjoint(event.accounts)
        )


def make_subscription(query: StreamQuery) -> Subscription:
    """Validate and resolve filters."""
    for name in query.types:
        if name not in TYPES:
            raise RequestInvalid(f"unknown event type {name[:80]!a}: {', '.join(TYPES)}")
    finality = query.min_finality or FINALITIES[FINALIZED]
    if finality not in FINALITIES:
        raise RequestInvalid(f"min_finality should be one of: {', '.join(FINALITIES)}")
    if max(len(query.addresses), len(query.trace_external_hash_norms)) > MAX_FILTERS:
        raise RequestInvalid(f"a subscription has at most {MAX_FILTERS} addresses")
    return Subscription(
        types=frozenset(query.types or TYPES),
        accounts=frozenset(render_raw(one.workchain, one.account) for one in query.addresses),
        norms=frozenset(query.trace_external_hash_norms),
        min_finality=FINALITIES.index(finality),
        action_types=frozenset(query.action_types),
        known_types=expand_names(query.supported_action_types or ("latest",)),
    )


def read_json_query(values: object) -> StreamQuery:
    """Parse filters from a JSON object: text, or lists of it where a filter has several."""
    if not isinstance(values, dict):
        raise RequestInvalid("a subscription is a JSON object")
    pairs = []
    for name, converter in converters_of(StreamQuery).items():
        value = values.get(name)
        if value is not None:
            texts = value if converter.many and isinstance(value, list) else [value]
            if not all(text and isinstance(text, str) for text in texts):
                raise RequestInvalid(f'schema: error converting value for "{name}"')
            pairs += [(name, text) for text in texts]
    return read_query(StreamQuery, Arguments(pairs))


class Client:
    """A stream client: its subscription, its backlog, and the cursor of the last event sent."""

    def __init__(self, subscription: Subscription, cursor: Cursor, max_events: int) -> None:
        self.subscription = subscription
        self.sent = cursor
        self.fault: str | None = None
        """Why it was closed; None while it is open."""
        self._max_events = max_events
        self._events: list[Event] = []
        self._changed = asyncio.Event()

    def push(self, event: Event) -> bool:
        """Append an event to the backlog; close the client and return False if it is full."""
        if len(self._events) >= self._max_events:
            waiting = f"more than {self._max_events} events were waiting for this client"
            self.close(f"{waiting}: reconnect with last_event_id")
            return False
        self._events.append(event)
        self._changed.set()
        return True

    def close(self, fault: str) -> None:
        """Drop the backlog and record why the stream ends."""
        self.fault = self.fault or fault
        self._events = []
        self._changed.set()

    def pass_over(self, cursor: Cursor) -> None:
        """Note that everything up to ``cursor`` was sent or filtered out."""
        self.sent = max(self.sent, cursor)

    async def take(self, wait_s: float) -> list[Event]:
        """Return the backlog, in order; [] after ``wait_s`` without events, or once closed."""
        if not self._events and self.fault is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
        self._changed.clear()
        events, self._events = self._events, []
        return events


def cut(items: Iterable[T], weigh: Callable[[T], int], most: int) -> list[list[T]]:
    """Split items into lists that weigh at most ``most``, or are one item that weighs more."""
    parts: list[list[T]] = []
    total = 0
    for item in items:
        weight = weigh(item)
        if not parts or total + weight > most:
            parts.append([])
            total = 0
        parts[-1].append(item)
        total += weight
    return parts


class ClientIndex:
    """An index of clients by their filters, so that an event is not offered to all of them."""

    def __init__(self) -> None:
        self.clients: set[Client] = set()
        self._by_key: dict[str | bytes | None, set[Client]] = {}
        """By account or norm; None has the clients without such a filter."""

    def list_types(self, finality: int = FINALIZED) -> frozenset[str]:
        """Return the types of which any client wants events of a finality."""
        subscriptions = (client.subscription for client in self.clients)
        wanted = (one.types for one in subscriptions if one.min_finality <= finality)
        return frozenset[str]().union(*wanted)

    def add(self, client: Client) -> None:
        """Add a client."""
        self.clients.add(client)
        for key in client.subscription.keys:
            self._by_key.setdefault(key, set()).add(client)

    def remove(self, client: Client) -> None:
        """Remove a client, if present."""
        if client not in self.clients:
            return
        self.clients.discard(client)
        for key in client.subscription.keys:
            self._by_key[key].discard(client)
            if not self._by_key[key]:
                del self._by_key[key]

    def find(self, event: Event) -> set[Client]:
        """Return all clients whose filters may match an event."""
        if event.kind == UNDONE:
            return set(self.clients)
        found: set[Client] = set()
        keys: list[str | bytes | None] = [None, *event.accounts, event.norm]
        for key in keys:
            found |= self._by_key.get(key, set())
        return found

"""Subscriptions of stream clients, and their bounded backlogs of events."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import (
    Addresses,
    Arguments,
    Converter,
    Hashes,
    Query,
    Text,
    Texts,
    read_query,
)
from tonlake.api.stream.event import (
    FINALITIES,
    FINALIZED,
    INVALIDATED,
    TYPES,
    UNDONE,
    Cursor,
    Event,
    parse_cursor,
)
from tonlake.api.text.address import render_raw
from tonlake.ingest.derive.action.version import expand_names

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """Validate and resolve filters.

    Raises:
        RequestInvalid: an unknown type or finality, or too many filters.
    """
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
    """Parse filters from a JSON object: lists of text, or text.

    Raises:
        RequestInvalid: it is not an object, or a value has another type.
    """
    if not isinstance(values, dict):
        raise RequestInvalid("a subscription is a JSON object")
    pairs = [(name, text) for name in values for text in _list_texts(name, values[name])]
    return read_query(StreamQuery, Arguments(pairs))


def _list_texts(name: str, value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON
    if name not in StreamQuery.__struct_fields__ or value is None:
        return []
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise RequestInvalid(f'schema: error converting value for "{name}"')
    return texts


TOO_SLOW = "more than {most} events were waiting for this client: reconnect with last_event_id"


class Client:
    """A stream client: its subscription, its backlog, and the cursor of the last event sent."""

    def __init__(self, subscription: Subscription, cursor: Cursor, max_events: int) -> None:
        """Take the subscription, the cursor to begin after, and the maximum backlog."""
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
            self.close(TOO_SLOW.format(most=self._max_events))
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


class ClientIndex:
    """An index of clients by their filters, so that an event is not offered to all of them."""

    def __init__(self) -> None:
        """Start without clients."""
        self.clients: set[Client] = set()
        self._by_key: dict[str | bytes | None, set[Client]] = {}
        """By account or norm; None has the clients without such a filter."""

    @property
    def types(self) -> frozenset[str]:
        """The types that any client subscribed to."""
        return frozenset[str]().union(*(client.subscription.types for client in self.clients))

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

"""Clients of a stream: what waits for each, within a bound, and which of them an event concerns."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from tonlake.api.stream.event import UNDONE

if TYPE_CHECKING:
    from tonlake.api.stream.event import Cursor, Event
    from tonlake.api.stream.subscription import Subscription

TOO_SLOW = "more than {most} events waited for this client: come back with last_event_id"


class Client:
    """What a client asked for, the events that wait for it, and how far it was sent them."""

    def __init__(self, subscription: Subscription, cursor: Cursor, most_events: int) -> None:
        """Take the subscription, the place after which it begins, and the bound."""
        self.subscription = subscription
        self.sent = cursor
        self.fault: str | None = None
        """Why it is closed."""
        self._most_events = most_events
        self._events: list[Event] = []
        self._changed = asyncio.Event()

    def push(self, event: Event) -> bool:
        """Let an event wait; False closes the client, for which too many wait already."""
        if len(self._events) >= self._most_events:
            self.close(TOO_SLOW.format(most=self._most_events))
            return False
        self._events.append(event)
        self._changed.set()
        return True

    def close(self, fault: str) -> None:
        """Forget what waits, and say why nothing more will come."""
        self.fault = self.fault or fault
        self._events = []
        self._changed.set()

    def pass_over(self, cursor: Cursor) -> None:
        """Note that nothing up to a place is wanted, or that it was sent."""
        self.sent = max(self.sent, cursor)

    async def take(self, wait_s: float) -> list[Event]:
        """Return what waits, in order; [] if there is nothing for so long, or no more to come."""
        if not self._events and self.fault is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
        self._changed.clear()
        events, self._events = self._events, []
        return events


class ClientIndex:
    """Clients by what they ask for, so that an event is not offered to all of them."""

    def __init__(self) -> None:
        """Know no clients."""
        self.clients: set[Client] = set()
        self._open: set[Client] = set()
        self._by_account: dict[str, set[Client]] = {}
        self._by_norm: dict[bytes, set[Client]] = {}

    @property
    def types(self) -> frozenset[str]:
        """The types that anybody wants."""
        return frozenset[str]().union(*(client.subscription.types for client in self.clients))

    def add(self, client: Client) -> None:
        """Take in a client."""
        self.clients.add(client)
        if client.subscription.is_open:
            self._open.add(client)
        for account in client.subscription.accounts:
            self._by_account.setdefault(account, set()).add(client)
        for norm in client.subscription.norms:
            self._by_norm.setdefault(norm, set()).add(client)

    def remove(self, client: Client) -> None:
        """Forget a client, if it is known."""
        if client not in self.clients:
            return
        self.clients.discard(client)
        self._open.discard(client)
        for account in client.subscription.accounts:
            self._by_account[account].discard(client)
            if not self._by_account[account]:
                del self._by_account[account]
        for norm in client.subscription.norms:
            self._by_norm[norm].discard(client)
            if not self._by_norm[norm]:
                del self._by_norm[norm]

    def find(self, event: Event) -> set[Client]:
        """Return all clients that may want an event."""
        if event.kind == UNDONE:
            return set(self.clients)
        found = set(self._open)
        for account in event.accounts:
            found |= self._by_account.get(account, set())
        if event.norm is not None:
            found |= self._by_norm.get(event.norm, set())
        return found

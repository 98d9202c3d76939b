"""One client of a stream: what waits for it, within a bound."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

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

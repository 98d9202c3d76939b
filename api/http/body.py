"""Middleware that receives request bodies and forwards a request once its body is complete.

A body has a deadline, a minimum rate and a memory limit; until it is complete, the request does not
count as in flight and takes no thread. The number of incomplete bodies of one address is limited;
the oldest is dropped for a new one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from tonlake.api.errors import BodyLate, ServiceBusy
from tonlake.api.http.gate import REFUSAL
from tonlake.api.http.transit import FULL, read_address

if TYPE_CHECKING:
    from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Receive, Scope, Send

    from tonlake.api.http.transit import Load, Transit

GRACE_S = 5.0
"""Grace period in which a body may be slower than the minimum rate."""

MIN_BYTES_S = 1024
"""Minimum rate of a body in bytes per second, after the grace period."""

LATE = "the body of the request did not come in time"


class Bodies:
    """Middleware that waits for the body of a request, or marks the request as refused."""

    def __init__(
        self,
        app: ASGIApp,
        transit: Transit,
        *,
        max_s: float,
        max_bytes: int,
        max_of_address: int,
    ) -> None:
        """Store the limits.

        Args:
            app: The next layer.
            transit: Counts the bytes held in memory.
            max_s: Deadline of a body in seconds.
            max_bytes: Largest body; a longer one is forwarded unbuffered, to be refused.
            max_of_address: Incomplete bodies allowed for one address.
        """
        self._app, self._transit = app, transit
        self._max_s, self._max_bytes = max_s, max_bytes
        self._max_of_address = max_of_address
        self._waiting: defaultdict[str, dict[int, asyncio.Timeout]] = defaultdict(dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the body, if any, and forward the request."""
        if scope["type"] != ScopeType.HTTP or not _has_body(scope, self._max_bytes):
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        if REFUSAL in state:
            await self._app(scope, receive, send)
            return
        load = self._transit.open_load(scope)
        try:
            messages = await self._take(scope, receive, load)
            if messages is None:
                state["headers"] = {"Connection": "close"}
            await self._app(scope, _replay(messages or [], receive), send)
        finally:
            self._transit.release(load)

    async def _take(
        self, scope: HTTPScope, receive: Receive, load: Load
    ) -> list[HTTPReceiveMessage] | None:
        """Return the messages of a body; None, with the refusal noted, if it does not arrive."""
        waiting = self._waiting[address := read_address(scope)]
        if len(waiting) >= self._max_of_address:
            next(iter(waiting.values())).reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(min(self._max_s, GRACE_S)) as timeout:
                waiting[id(load)] = timeout
                return await self._collect(receive, load, timeout)
        except TimeoutError:
            scope["state"][REFUSAL] = BodyLate(LATE)
        except ServiceBusy as error:
            scope["state"][REFUSAL] = error
        finally:
            waiting.pop(id(load), None)
            if not waiting:
                self._waiting.pop(address, None)
        return None

    async def _collect(
        self, receive: Receive, load: Load, within: asyncio.Timeout
    ) -> list[HTTPReceiveMessage]:
        began_s = asyncio.get_running_loop().time()
        messages: list[HTTPReceiveMessage] = []
        size = 0
        while size <= self._max_bytes:
            message: Any = await receive()
            messages.append(message)
            if not message.get("more_body"):
                break
            size += len(message["body"])
            if not self._transit.add(load, len(message["body"])):
                raise ServiceBusy(FULL)
            allowed_s = min(self._max_s, GRACE_S + size / MIN_BYTES_S)
            within.reschedule(began_s + allowed_s)
        return messages


def _has_body(scope: HTTPScope, max_bytes: int) -> bool:
    """Return whether the request has a body to wait for: none that its length already rules out."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return value.isdigit() and 0 < int(value) <= max_bytes
        if name == b"transfer-encoding":
            return True
    return False


def _replay(messages: list[HTTPReceiveMessage], receive: Receive) -> Receive:
    """Return a ``receive`` that replays buffered messages before new ones."""
    left = iter(messages)

    async def take() -> Any:  # noqa: ANN401 - any message
        for message in left:
            return message
        return await receive()

    return take

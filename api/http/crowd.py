"""The layer that bounds open streams: in all, and of one address; idle WebSockets are closed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from tonlake.api.errors import LakeUnavailable, ShareExceeded
from tonlake.api.http.gate import REFUSAL, REQUESTS
from tonlake.api.http.transit import read_address

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

SHARE = 2
"""One address may have one part of so many of all streams."""

FIRST_MESSAGE_S = 60.0
"""How long a WebSocket may be open before its first message."""

TOO_MANY = "too many clients of streams at once"
SHARE_FULL = "this address has {count} streams open, the most it may have"
_POLICY_VIOLATION = 1008


class Crowd:
    """Middleware that counts open streams and WebSockets, and notes which are refused."""

    def __init__(self, app: ASGIApp, *, most: int, streams: str | tuple[str, ...]) -> None:
        """Take the bound of streams, and the path prefixes of those over HTTP."""
        self._app, self._streams = app, streams
        self._most, self._most_of_address = most, max(1, most // SHARE)
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        if scope["type"] not in REQUESTS or not scope["path"].startswith(self._streams):
            await self._app(scope, receive, send)
            return
        address, state = read_address(scope), scope.setdefault("state", {})
        if self._open[address] >= self._most_of_address:
            text = SHARE_FULL.format(count=self._most_of_address)
            state.setdefault(REFUSAL, ShareExceeded(text))
        if scope["type"] == ScopeType.WEBSOCKET:
            # Where one is a client of a stream, it is counted there, as those over HTTP are.
            if self._open.total() >= self._most:
                state.setdefault(REFUSAL, LakeUnavailable(TOO_MANY))
            receive = _time_first_message(receive, send)
        self._open[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


def _time_first_message(receive: Receive, send: Send) -> Receive:
    """Return what receives, and closes a WebSocket over which no message comes in time."""
    waits = True

    async def take() -> Any:  # noqa: ANN401 - any message
        nonlocal waits
        if not waits:
            return await receive()
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                message = await receive()
        except TimeoutError:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": None})
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION}
        waits = message["type"] == "websocket.connect"
        return message

    return take

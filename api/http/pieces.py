"""Middleware that sends large responses in chunks, within a limit of buffered bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from tonlake.api.errors import ServiceBusy
from tonlake.api.http.gate import REFUSAL
from tonlake.api.http.transit import FULL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from litestar.types import ASGIApp, Message, Receive, Scope, Send

    from tonlake.api.http.transit import Transit

    Refuse = Callable[[Scope, Receive, Send, Exception], Awaitable[None]]

PIECE_BYTES = 256 << 10
"""Size of a chunk; the next one waits until the client has read most of it."""


class Pieces:
    """Middleware that sends a body in chunks, as fast as the client reads."""

    def __init__(
        self, app: ASGIApp, transit: Transit, refuse: Refuse, *, streams: str | tuple[str, ...]
    ) -> None:
        """Store the byte counter, the error handler, and the path prefixes of streams."""
        self._app, self._transit, self._refuse = app, transit, refuse
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, and send the response in chunks."""
        if scope["type"] != ScopeType.HTTP or scope["path"].startswith(self._streams):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Sender(self, scope, receive, send).send)

    async def send_large(
        self, scope: Scope, receive: Receive, send: Send, start: Message, body: bytes
    ) -> None:
        """Send a response in chunks, or 503 instead if too many bytes are buffered."""
        load = self._transit.open_load(scope)
        if not self._transit.add(load, len(body)):
            scope["state"][REFUSAL] = error = ServiceBusy(FULL)
            await self._refuse(scope, receive, send, error)
            return
        try:
            await send(start)
            for at in range(0, len(body), PIECE_BYTES):
                piece, more = body[at : at + PIECE_BYTES], at + PIECE_BYTES < len(body)
                await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            self._transit.release(load)

    async def send_small(self, scope: Scope, send: Send, start: Message, message: Message) -> None:
        """Send the head of a response and the first part of its body in one write."""
        outlet = self._transit.find_outlet(scope)
        if outlet is None:
            await send(start)
            await send(message)
            return
        outlet.hold()
        try:
            await send(start)
            await send(message)
        finally:
            outlet.flush()


class _Sender:
    """Sends one response; its head is held back until the size of the body is known."""

    __slots__ = ("_pieces", "_receive", "_scope", "_send", "_start")

    def __init__(self, pieces: Pieces, scope: Scope, receive: Receive, send: Send) -> None:
        self._pieces, self._scope, self._receive, self._send = pieces, scope, receive, send
        self._start: Message | None = None

    async def send(self, message: Any) -> None:  # noqa: ANN401 - any message
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            body: bytes = message.get("body", b"")
            if len(body) > PIECE_BYTES and not message.get("more_body"):
                await self._pieces.send_large(self._scope, self._receive, self._send, start, body)
                return
            await self._pieces.send_small(self._scope, self._send, start, message)
            return
        await self._send(message)

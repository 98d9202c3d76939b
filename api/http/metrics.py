"""Middleware that records the status and the duration of each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.api.http.gate import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from litestar.types import ASGIApp, Message, Receive, Scope, Send

UNANSWERED = "none"
"""Status of a request whose client disconnected before the response."""


class Metrics:
    """Middleware that reports the start and the end of every request and WebSocket."""

    def __init__(self, app: ASGIApp, begin: Callable[[Scope], Callable[[str], None]]) -> None:
        """Store ``begin``, which takes a scope and returns the function to call with the status."""
        self._app, self._begin = app, begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] not in REQUESTS:
            await self._app(scope, receive, send)
            return
        end = self._begin(scope)
        observer = _Observer(send)
        try:
            await self._app(scope, receive, observer.send)
        finally:
            end(observer.status)


class _Observer:
    """Reads the status of a response as it passes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = UNANSWERED

    def send(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self.status = str(message["status"])
        elif message["type"] == "websocket.accept":
            self.status = "101"
        elif message["type"] == "websocket.close" and self.status == UNANSWERED:
            self.status = "403"
        return self._send(message)

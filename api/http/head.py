"""Limits the size of a request's head and the time it takes, around the server's protocol.

The server's parser in C has no limit for heads, no timeout, and reads no URL beyond 64 KiB; TON
Center accepts longer URLs with many addresses, so they are accepted here too. Data passes through
here first: heads are measured and timed, and the query of a long URL is moved to a header, from
which `LongQueries` restores it. Output passes through an `Outlet`, so that the registry
(`connection`) can close connections that are late or do not read.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import httptools
import uvicorn
from litestar.enums import ScopeType

from tonlake.api.http.connection import HEAD_S, Connections
from tonlake.api.http.outlet import Outlet

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, Receive, Scope, Send

REQUEST_HEAD_BYTES = 1 << 20
LONG_LINE_BYTES = 1 << 15
"""The query of a longer request line is moved to a header."""

_NAME = b"x-query-" + secrets.token_hex(8).encode()
"""Name of that header, and placeholder of the query; random, so that no client can send it."""

BODY_S = 30.0
BODY_SPARE_S = 10.0
"""Bodies are timed where they are read (`body`); one that no layer reads gets this much longer."""


def _write_refusal(status: bytes, text: bytes) -> bytes:
    return (
        b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
        b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(text), text)
    )


_TOO_LARGE = _write_refusal(b"400 Bad Request", b"The head of the request is too large.")
_TOO_MANY = _write_refusal(b"429 Too Many Requests", b"Too many connections are open.")


@cache
def load_protocol() -> Callable[..., asyncio.Protocol]:
    """Return the server's protocol class with the parser in C, by its name in the configuration."""
    config = uvicorn.Config(_answer_none, http="httptools", log_config=None, lifespan="off")
    config.load()
    return config.http_protocol_class


async def _answer_none(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for the application."""


class BoundedHead(asyncio.Protocol):
    """Refuses a request with status 400 once its URL and headers are too large.

    Bytes are counted as they arrive, since a parser reports a header only once it is complete.
    """

    def __init__(
        self,
        connections: Connections | None = None,
        body_s: float = BODY_S,
        **inputs: Any,  # noqa: ANN401 - whatever the server's protocol takes
    ) -> None:
        """Store registry and body timeout; ``inputs`` are passed to the server's protocol."""
        self._connections = Connections() if connections is None else connections
        self._body_s = body_s
        self._inner: asyncio.Protocol = load_protocol()(**inputs)
        self._parser = httptools.HttpRequestParser(self)
        self._begins, self._in_head, self._upgraded = True, False, False
        self._head_bytes = 0
        self._line = bytearray()
        """The request line while it is incomplete."""
        self.progress_s = time.monotonic()
        self.silent_s: float | None = self.progress_s
        self.allowed_s = HEAD_S
        self.read, self.shared = 0, True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, unless there are too many."""
        self.outlet = Outlet(cast("asyncio.Transport", transport), self._hand_over)
        self.peer = tuple(transport.get_extra_info("peername") or ("", id(self)))[:2]
        if self._connections.admit(self):
            self._inner.connection_made(cast("asyncio.Transport", self.outlet))
            return
        self._inner, self._upgraded = asyncio.Protocol(), True
        self.outlet.write(_TOO_MANY)
        self.outlet.close()

    def _hand_over(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection over to another protocol: WebSocket."""
        self._inner, self._upgraded = cast("asyncio.Protocol", protocol), True
        self.silent_s = None

    def data_received(self, data: bytes) -> None:
        """Measure received data, and forward it."""
        if self._begins and not self._line and _is_one_request(data):
            self.silent_s = None
            self._inner.data_received(data)
        elif self._upgraded:
            self._inner.data_received(data)
        else:
            self._measure(data)

    def _measure(self, data: bytes) -> None:
        if self._begins:
            self._await(HEAD_S)
            data = self._take_line(data)
        # The server's protocol raises the same errors.
        with suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._parser.feed_data(data)
        if self._in_head:
            self._head_bytes += len(data)
        if max(self._head_bytes, len(self._line)) > REQUEST_HEAD_BYTES:
            self.outlet.write(_TOO_LARGE)
            self.outlet.close()
        elif data:
            self._inner.data_received(data)

    def _await(self, allowed_s: float) -> None:
        """Start the timeout for the rest of a head or body."""
        if self.silent_s is None or self.allowed_s != allowed_s:
            self.silent_s, self.allowed_s = time.monotonic(), allowed_s

    def _take_line(self, data: bytes) -> bytes:
        """Return the received data once it has the complete request line; b"" until then."""
        if not self._line and b"\n" in data[:LONG_LINE_BYTES]:
            return data
        known = len(self._line)
        self._line += data
        end = self._line.find(b"\n", known)
        if end < 0:
            return b""
        data, self._line = bytes(self._line), bytearray()
        return _move_query(data, end) if end > LONG_LINE_BYTES else data

    def on_message_begin(self) -> None:
        """Reset the count at the start of each request."""
        self._begins, self._in_head, self._head_bytes = False, True, 0
        self._await(HEAD_S)

    def on_headers_complete(self) -> None:
        """Stop counting: bodies have their own limit."""
        self._in_head, self._head_bytes = False, 0
        self._await(self._body_s + BODY_SPARE_S)

    def on_message_complete(self) -> None:
        """Prepare for the next request."""
        self._begins, self.silent_s = True, None

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on."""
        self._connections.remove(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()


def _is_one_request(data: bytes) -> bool:
    """Return whether data is one short request without a body; most are, and need no measuring."""
    if not data.startswith(b"GET ") or len(data) > LONG_LINE_BYTES:
        return False
    if data.find(b"\r\n\r\n") != len(data) - 4:
        return False
    lower = data.lower()
    return b"content-length" not in lower and b"transfer-encoding" not in lower


def _move_query(data: bytes, end: int) -> bytes:
    """Return a request with its query moved to a header; the request line ends at ``end``."""
    method, _, rest = data[:end].partition(b" ")
    target, _, version = rest.rpartition(b" ")
    path, _, query = target.partition(b"?")
    if b" " in target or not query:
        return data  # The parser will refuse it.
    query = query.partition(b"#")[0]
    return b"%b %b?%b %b\n%b: %b\r\n%b" % (
        *(method, path, _NAME, version),
        *(_NAME, query, data[end + 1 :]),
    )


class LongQueries:
    """Middleware that restores queries that were too long for the server's parser."""

    def __init__(self, app: ASGIApp) -> None:
        """Store the next layer."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] == ScopeType.HTTP and scope["query_string"] == _NAME:
            headers = list(scope["headers"])
            scope["query_string"] = next(value for name, value in headers if name == _NAME)
            scope["headers"] = [pair for pair in headers if pair[0] != _NAME]
        await self._app(scope, receive, send)

"""The HTTP server: uvicorn with its parser in C, and limits on connections and request heads.

uvicorn limits neither the size of a head nor the time that it takes, and its transport buffers what
a client does not read. A registry looks at all connections once a second, so that no request needs
a timer of its own, and closes those that are silent. The kernel closes those that stop reading
(``STALLED_S``); the registry does so sooner while memory is scarce.
"""

import asyncio
import resource
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tonlake.api.http.address import name_address
from tonlake.lake.process import raise_file_limit

CONNECTION = "connection"
"""Key in the scope's state of an HTTP request's connection; only a server sets it."""

HEAD_S = 20.0
"""Timeout of a request's head, and of a body that its response does not wait for."""

STALLED_S = 60
"""How long a client may leave a pending response unread (``TCP_USER_TIMEOUT`` of tcp(7))."""

PRESSED_S = 5.0
"""The same limit while memory is scarce."""

EVERY_S = 1.0

HEAD_BYTES = 1 << 20
"""Longest head, and most bytes after it that are no body: of trailers, of extensions of chunks."""

MAX_HEADERS = 200
"""Of a request, trailers included; tiny ones take twelve times their bytes."""

REQUEST_BYTES = 1 << 20
"""Longest body of a request, and longest message over a WebSocket."""

PARSED_URL_BYTES = (1 << 16) - 1
"""Longest URL that the parser takes apart; TON Center accepts longer ones with many addresses."""

MAX_CONNECTIONS = 20_000
MAX_UNSENT_BYTES = 256 << 20
OTHER_FILES = 1024
"""File descriptors reserved for the files of the lake."""


def count_connections() -> int:
    """Return how many connections the descriptor limit allows beside the files of the lake."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(most // 2, most - OTHER_FILES))


def limit_stalls(listener: socket.socket) -> None:
    """Let the kernel close connections of a listening socket whose peers stop reading."""
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_S * 1000)


def _write_refusal(status: bytes, text: bytes) -> bytes:
    return (
        b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
        b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(text), text)
    )


_TOO_LARGE = _write_refusal(b"400 Bad Request", b"The head of the request is too large.")
_TOO_MANY = _write_refusal(b"429 Too Many Requests", b"Too many connections are open.")


class Connection(HttpToolsProtocol):
    """One connection of a client; a WebSocket's leaves it when the request is upgraded."""

    def __init__(self, connections: "Connections", **inputs: Any) -> None:  # noqa: ANN401
        """Store the registry; ``inputs`` are what the server passes."""
        super().__init__(**inputs)
        self._connections = connections
        self.address = ""
        """The peer's address, as ``name_address`` writes it."""
        self.silent_since_s: float | None = None
        """Since when the rest of a request is missing; None if none is."""
        self.moved_s = 0.0
        """When the client last read data, or had none to read."""
        self._unsent = 0
        self._is_between = self._is_in_head = True
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, unless there are too many."""
        super().connection_made(transport)
        self.address = name_address(self.client[0]) if self.client else ""
        self.silent_since_s = self.moved_s = self._connections.read_clock()
        if not self._connections.admit(self):
            self._refuse(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the registry."""
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data; measure what is no body, and time a head that is not complete."""
        self._is_between = False
        super().data_received(data)
        if self._is_between:
            return
        if self._is_in_head and self.silent_since_s is None:
            self.silent_since_s = self._connections.read_clock()
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start to count the bytes of a head."""
        super().on_message_begin()
        self.scope["state"][CONNECTION] = self
        self._is_between, self._is_in_head, self._head_bytes = False, True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header or trailer; one too many makes the request invalid."""
        if len(self.headers) >= MAX_HEADERS:
            raise ValueError(f"more than {MAX_HEADERS} headers")
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Store a piece of a body, which has limits of its own (`transit`)."""
        super().on_body(body)
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Begin the request; its body is timed where it is read (`transit`)."""
        self._is_in_head, self.silent_since_s = False, None
        if len(self.url) <= PARSED_URL_BYTES:
            super().on_headers_complete()
            return
        url, (self.url, _, query) = self.url, self.url.partition(b"?")
        super().on_headers_complete()  # the request runs as a task, later
        self.scope["query_string"], self.url = query.partition(b"#")[0], url

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        super().on_message_complete()
        self._is_between = self._is_in_head = True
        self._head_bytes, self.silent_since_s = 0, None

    def on_response_complete(self) -> None:
        """Start the clock for the rest of a body whose request is already answered."""
        super().on_response_complete()
        if not self._is_between and self.silent_since_s is None:
            self.silent_since_s = self._connections.read_clock()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over; streams have limits of their own (`admission`)."""
        self._connections.remove(self)
        super().handle_websocket_upgrade()

    def measure_unsent(self, now_s: float) -> int:
        """Return how many bytes the client has not read; note whether it has read any."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self.moved_s, self._unsent = now_s, unsent
        return unsent

    def close_if_silent(self, now_s: float) -> None:
        """Close the connection if the rest of a request is overdue."""
        since_s = self.silent_since_s
        if since_s is not None and now_s - since_s > HEAD_S and self.transport.is_reading():
            self.transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._connections.remove(self)
        self.transport.abort()

    def leave_share(self) -> None:
        """Exempt the connection of a trusted proxy from the limit of its address."""
        self._connections.leave_share(self)

    def _refuse(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()


class Connections:
    """All open connections; used by the thread of the event loop."""

    def __init__(
        self,
        *,
        most: int = MAX_CONNECTIONS,
        max_of_address: int = MAX_CONNECTIONS,
        max_unsent_bytes: int = MAX_UNSENT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most, self._max_of_address = most, max_of_address
        self._max_unsent_bytes = max_unsent_bytes
        self.read_clock = clock
        self._open: dict[Connection, None] = {}
        self._shares: defaultdict[str, dict[Connection, None]] = defaultdict(dict)
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: Connection) -> bool:
        """Register a connection, in place of a silent one if need be; False if there is no room."""
        share = self._shares[connection.address]
        if len(share) >= self._max_of_address and not _end_silent(share):
            return False
        if len(self._open) >= self._most and not _end_silent(self._open):
            return False
        self._open[connection] = None
        # If the only connection of the address was just closed, its share is a new object.
        self._shares[connection.address][connection] = None
        return True

    def remove(self, connection: Connection) -> None:
        """Unregister a connection."""
        if connection in self._open:
            del self._open[connection]
            self.leave_share(connection)

    def leave_share(self, connection: Connection) -> None:
        """Count a connection no longer for its address."""
        share = self._shares[connection.address]
        share.pop(connection, None)
        if not share:
            del self._shares[connection.address]

    def sweep(self) -> None:
        """Close connections with an overdue request, and stalled ones if too much is unsent."""
        now_s = self.read_clock()
        unsent_bytes = 0
        for connection in list(self._open):
            connection.close_if_silent(now_s)
            unsent_bytes += connection.measure_unsent(now_s)
        excess_bytes = unsent_bytes - self._max_unsent_bytes
        for connection in self.list_stalled(self._open) if excess_bytes > 0 else ():
            if excess_bytes > 0:
                excess_bytes -= connection.transport.get_write_buffer_size()
                connection.abort()

    def list_stalled(self, connections: Iterable[Connection]) -> list[Connection]:
        """Return connections that have read nothing for a while, the longest stalled first."""
        latest_s = self.read_clock() - PRESSED_S
        stalled = [one for one in connections if one.moved_s < latest_s]
        return sorted(stalled, key=lambda one: one.moved_s)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start sweeping once a second."""
        self._timer = loop.call_later(EVERY_S, self._sweep_again, loop)

    def _sweep_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweep()
        self.start(loop)

    def stop(self) -> None:
        """Stop sweeping."""
        if self._timer is not None:
            self._timer.cancel()


def _end_silent(connections: Iterable[Connection]) -> bool:
    """Close the first connection that waits for a request; False if none does."""
    silent = next((one for one in connections if one.silent_since_s is not None), None)
    if silent is None:
        return False
    silent.abort()
    return True


SWITCH_S = 0.0005
"""Switch interval of the interpreter.

With the default of 5 ms, a thread that reads files waits that long after each read while the event
loop is busy: with 100 streaming clients, the events of a commit took 383 ms instead of 130.
"""


KEEP_ALIVE_S = 75
"""Keep-alive timeout of an idle connection.

It is longer than that of proxies (60 s): otherwise a request could arrive on a connection that is
just being closed, and get no response.
"""

HANG_UP_S = 2
"""How long requests may take to notice that their clients are gone."""


def configure_server(app: ASGIApp, connections: Connections) -> uvicorn.Config:
    """Return the server's configuration; the application reads the headers of proxies itself."""
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(Connection, connections)),
        proxy_headers=False,
        loop="uvloop",
        log_level="warning",
        access_log=False,  # The application logs requests itself.
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        ws_max_size=REQUEST_BYTES,
        ws_max_queue=1,  # only earlier versions of uvicorn queue more
        ws_per_message_deflate=False,  # a message of few bytes would be as large once inflated
    )


class StreamingServer(uvicorn.Server):
    """Ends streams at shutdown; uvicorn would wait for their connections forever."""

    def __init__(
        self, app: ASGIApp, end_streams: Sequence[Callable[[], None]], connections: Connections
    ) -> None:
        """Store the functions that end streams; the rest is passed to ``configure_server``."""
        super().__init__(configure_server(app, connections))
        self._end_streams = end_streams

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until shutdown."""
        sys.setswitchinterval(SWITCH_S)
        raise_file_limit()  # a connection is a file, too
        for listener in sockets or ():
            limit_stalls(listener)
        super().run(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all sockets and connections, and shut the application down."""
        for end in self._end_streams:
            end()
        await super().shutdown(sockets)
        if not self.force_exit:
            return
        # After a second Ctrl-C uvicorn would cancel the application with a traceback.
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=HANG_UP_S)
        await self.lifespan.shutdown()

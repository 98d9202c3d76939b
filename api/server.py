"""The HTTP server: uvicorn with its fast parser, and a bound on what precedes a request's body."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.whole import offer

if TYPE_CHECKING:
    import socket

    from litestar import Litestar

    from api.stream.hub import Hub

REQUEST_HEAD_BYTES = 1 << 20
"""Long lists of addresses in a URL are accepted up to here, as by the peer."""

SWITCH_S = 0.0005
"""The loop of events and the threads beside it take turns so often.

With the interpreter's 5 ms a thread that reads files waits so long after each read while the loop
is busy: events of a commit were made in 400 ms in place of 100 while 100 clients were sent to.
"""


KEEP_ALIVE_S = 75
"""A connection is kept so long without a request.

Longer than proxies keep theirs (60 s): one that is closed here while a request is on its way there
leaves that without an answer.
"""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a request with status 400 once its URL and headers have become too large.

    Bytes are counted as they come: the parser keeps a header to itself until it has ended.
    """

    _in_head = False
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take what has come over the connection."""
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > REQUEST_HEAD_BYTES:
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """Count anew for each request of a connection."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting: bodies have a bound of their own.

        The parser of URLs reads no more than 64 KiB, so it gets what precedes the query alone.
        The request is answered after this returns: its scope is complete by then.
        """
        self._in_head = False
        self.url, _, query = self.url.partition(b"?")
        before = self.cycle
        super().on_headers_complete()
        self.scope["query_string"] = query.partition(b"#")[0]
        if self.cycle is not before:  # Where a stream begins, none is made.
            offer(self.cycle)


def configure_server(app: Litestar) -> uvicorn.Config:
    """Return how an application is served: event loop and parser in C, errors alone logged."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        loop="uvloop",
        log_level="warning",
        access_log=False,  # The service logs requests itself.
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
    )


class StreamingServer(uvicorn.Server):
    """Ends streams once it is told to stop: it waits for all connections, and those last."""

    def __init__(self, app: Litestar) -> None:
        """Take an application with its hub of streams."""
        super().__init__(configure_server(app))
        self._hub: Hub = app.state.hub

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        sys.setswitchinterval(SWITCH_S)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection is a file, too
        super().run(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what listens and all connections, and end the application."""
        self._hub.end_clients()
        await super().shutdown(sockets)

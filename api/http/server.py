"""The HTTP server: uvicorn with its fast parser, and a bound on what precedes a request's body."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import uvicorn

from tonlake.api.http.head import BODY_S, BoundedHead, LongQueries
from tonlake.lake.process.limit import raise_file_limit

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from litestar.types import ASGIApp

    from tonlake.api.http.connection import Connections

SWITCH_S = 0.0005
"""How long a thread runs before another one gets its turn, the event loop's among them.

With the interpreter's 5 ms a thread that reads files waits so long after each read while the loop
is busy: events of a commit were made in 400 ms in place of 100 while 100 clients were sent to.
"""


KEEP_ALIVE_S = 75
"""How long a connection without a request is kept.

Longer than proxies keep theirs (60 s): one that is closed here while a request is on its way there
leaves that without an answer.
"""

HANG_UP_S = 2
"""How long requests may take to notice that their clients have been dropped."""


def configure_server(
    app: ASGIApp, connections: Connections | None = None, body_s: float = BODY_S
) -> uvicorn.Config:
    """Return how an application is served: event loop and parser in C, errors alone logged.

    Args:
        app: Answers requests; it reads what proxies state, and the server does not.
        connections: Bounds the connections of the server; by default each is bounded alone.
        body_s: How long a body may take.
    """

    class Bounded(BoundedHead):
        """The protocol with the bounds of this server."""

        def __init__(self, **inputs: Any) -> None:  # noqa: ANN401 - what the server passes
            super().__init__(connections, body_s, **inputs)

    return uvicorn.Config(
        LongQueries(app),
        http=Bounded,
        proxy_headers=False,
        loop="uvloop",
        log_level="warning",
        access_log=False,  # The service logs requests itself.
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
    )


class StreamingServer(uvicorn.Server):
    """Ends streams at shutdown: the server waits for all connections, and streams stay open."""

    def __init__(
        self,
        app: ASGIApp,
        end_streams: Sequence[Callable[[], None]],
        connections: Connections,
        *,
        body_s: float,
    ) -> None:
        """Take an application, what ends its streams, and the rest as ``configure_server``."""
        super().__init__(configure_server(app, connections, body_s))
        self._end_streams = end_streams

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until shutdown."""
        sys.setswitchinterval(SWITCH_S)
        raise_file_limit()  # a connection is a file, too
        super().run(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what listens and all connections, and end the application."""
        for end in self._end_streams:
            end()
        await super().shutdown(sockets)
        if self.force_exit:  # by a second Ctrl-C
            await self._hang_up()

    async def _hang_up(self) -> None:
        """Drop clients and end the application, which the server would cancel with a traceback."""
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=HANG_UP_S)
        await self.lifespan.shutdown()

"""The HTTP server: uvicorn with its parser in C, and limits on connections and request heads."""

import asyncio
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import uvicorn
from litestar.types import ASGIApp

from tonlake.api.http.connection import REQUEST_BYTES, Connection, Connections, limit_stalls
from tonlake.lake.process import raise_file_limit

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

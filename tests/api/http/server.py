"""A server of any application, in the test's event loop, and raw socket clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from tests.clock import Clock
from tonlake.api.http.server import Connections, configure_server, limit_stalls

REQUEST = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"


def make_connections(
    clock: Clock | None = None, *, most: int = 100, of_address: int = 100, unsent: int = 1 << 30
) -> Connections:
    """Return a registry with generous limits, on a test's clock or the machine's."""
    own = {} if clock is None else {"clock": clock}
    return Connections(most=most, max_of_address=of_address, max_unsent_bytes=unsent, **own)


class Clients:
    """Sockets of clients of one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._open: list[socket.socket] = []

    async def open(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        """Return a socket that has sent something, with a small receive buffer."""
        client = socket.socket()
        self._open.append(client)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)  # noqa: FBT003
        client.bind((source, 0))
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", self.port))
        await loop.sock_sendall(client, sent)
        await asyncio.sleep(0.05)
        return client

    async def close(self) -> None:
        """Close all sockets, and let the server see it."""
        for client in self._open:
            client.close()
        await asyncio.sleep(0.05)


async def read(client: socket.socket, wait_s: float = 0.3) -> tuple[bytes, bool]:
    """Return the data received within a time, and whether the other end has closed."""
    found = b""
    try:
        async with asyncio.timeout(wait_s):
            while piece := await asyncio.get_running_loop().sock_recv(client, 1 << 20):
                found += piece
    except ConnectionError:
        return found, True
    except TimeoutError:
        return found, False
    return found, True


@asynccontextmanager
async def serving(app: Any, connections: Connections) -> AsyncIterator[Clients]:
    """Serve an application while the block runs; yields a factory of sockets."""
    config = configure_server(app, connections)
    config.lifespan = "off"
    config.load()
    state, others = uvicorn.server.ServerState(), asyncio.all_tasks()

    def connect() -> asyncio.Protocol:
        protocol: Any = config.http_protocol_class
        made: asyncio.Protocol = protocol(config=config, server_state=state, app_state={})
        return made

    server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    for listener in server.sockets:
        limit_stalls(listener)
    clients = Clients(server.sockets[0].getsockname()[1])
    try:
        yield clients
    finally:
        await clients.close()
        server.close()
        tasks = asyncio.all_tasks() - others
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

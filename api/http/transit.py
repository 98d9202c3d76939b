"""Bytes in transit: bodies being received, made, cached for a client or sent, within one limit.

A request's bytes count from the moment they exist until its response is sent or its client is gone,
in every layer they pass. A request body has a deadline, a minimum rate and a memory limit;
until it is complete, the request does not count as in flight and takes no thread. A response is
sent in pieces, as fast as its client reads.
"""

import asyncio
from collections import defaultdict
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPRequestEvent, HTTPScope, Receive, Scope, Send

from tonlake.api.errors import BodyLate, ServiceBusy
from tonlake.api.http.address import name_address
from tonlake.api.http.gate import REFUSAL, STREAMS
from tonlake.api.http.server import CONNECTION, Connection, Connections
from tonlake.lake.system import return_memory

PIECE_BYTES = 64 << 10
"""Size of a piece; the next one waits until the client has read most of it.

Smaller bodies are not counted: the transport of a connection buffers one at most.
"""

GRACE_S = 5.0
"""Grace period in which a request body may be slower than the minimum rate."""

MIN_BYTES_S = 1024
"""Minimum rate of a request body in bytes per second, after the grace period."""

RETURNED_BYTES = 32 << 20
"""Memory goes back to the system after this many bytes were released.

glibc keeps what large responses leave among smaller blocks: 200 clients that read none of 6 MB each
took 624 MiB, not 548. To map each response apart (``mallopt``) costs a tenth of a large page.
"""

LOAD = "load"
"""Key in the scope's state of the count of a request's bytes."""

FULL = "too many bytes wait for clients: read the answers that are on their way first"
LATE = "the body of the request did not come in time"


class Load:
    """Bytes held for one request."""

    __slots__ = ("_transit", "address", "connection", "held")

    def __init__(self, transit: "Transit", scope: Scope) -> None:
        self._transit, self.held = transit, 0
        self.address = read_address(scope)
        self.connection: Connection | None = scope["state"].get(CONNECTION)

    def add(self, size: int) -> None:
        """Count bytes, unless they are few; or raise ServiceBusy, and count nothing.

        Under pressure, connections that have not read for some seconds are closed; only those of
        the same address if the limit of that address is exceeded.
        """
        if size > PIECE_BYTES:
            self._transit.add(self, size)


def hold(scope: Scope, size: int) -> None:
    """Count the bytes of a response before it is sent, or kept to be sent, as ``Load.add``."""
    load: Load | None = scope["state"].get(LOAD)
    if load is not None:
        load.add(size)


class Transit:
    """Counts the bytes of all requests; used only by the event loop's thread."""

    def __init__(self, connections: Connections, *, most: int, max_of_address: int) -> None:
        """Store the connections and the limits in bytes; that of an address fits one response."""
        self._connections = connections
        self._most, self._max_of_address = most, max_of_address
        self._of_address: defaultdict[str, int] = defaultdict(int)
        self._loads: dict[Load, None] = {}
        self.held = self._released = 0
        """Bytes held for all requests, and those released since memory was returned."""

    def add(self, load: Load, size: int) -> None:
        """Add bytes to the count of a request, as ``Load.add``."""
        if any(self._is_full(load.address, size)):
            loads = {each.connection: each for each in self._loads if each.connection is not None}
            for connection in self._connections.list_stalled(loads):
                share_full, full = self._is_full(load.address, size)
                if full or (share_full and loads[connection].address == load.address):
                    self.release(loads[connection])
                    connection.abort()
            if any(self._is_full(load.address, size)):
                raise ServiceBusy(FULL)
        self._loads[load] = None
        self._change(load, size)

    def release(self, load: Load) -> None:
        """Release all bytes of a request."""
        if load in self._loads:
            del self._loads[load]
            self._released += load.held
            self._change(load, -load.held)
            if self._released > RETURNED_BYTES:
                self._released = 0
                return_memory()

    def _change(self, load: Load, size: int) -> None:
        load.held += size
        self.held += size
        self._of_address[load.address] += size
        if not self._of_address[load.address]:
            del self._of_address[load.address]

    def _is_full(self, address: str, size: int) -> tuple[bool, bool]:
        """Return whether ``size`` more bytes exceed the limit of the address, and that of all."""
        of_address = self._of_address.get(address, 0)
        return of_address + size > self._max_of_address, self.held + size > self._most


class Carrier:
    """Middleware that receives request bodies, sends responses in pieces, and counts both."""

    def __init__(
        self,
        app: ASGIApp,
        transit: Transit,
        *,
        body_s: float,
        max_body_bytes: int,
        max_bodies_of_address: int,
    ) -> None:
        """Store the limits of request bodies: deadline, size, and incomplete ones of an address.

        A longer one is forwarded unbuffered, to be refused. The oldest incomplete one of an address
        is dropped for a new one.
        """
        self._app, self._transit = app, transit
        self._body_s, self._max_body_bytes = body_s, max_body_bytes
        self._max_bodies_of_address = max_bodies_of_address
        self._waiting: defaultdict[str, dict[int, asyncio.Timeout]] = defaultdict(dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the request's body, if any, and forward it; send the response in pieces."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        load = state[LOAD] = Load(self._transit, scope)
        try:
            if REFUSAL not in state and _has_body(scope, self._max_body_bytes):
                receive = await self._take(scope, receive, load)
            if not scope["path"].startswith(STREAMS):
                send = _send_in_pieces(send)
            await self._app(scope, receive, send)
        finally:
            self._transit.release(load)

    async def _take(self, scope: HTTPScope, receive: Receive, load: Load) -> Receive:
        """Return a ``receive`` of a complete body; if it does not arrive, note the refusal."""
        state: dict[str, Any] = scope["state"]
        waiting = self._waiting[load.address]
        if len(waiting) >= self._max_bodies_of_address:
            oldest = waiting.pop(next(iter(waiting)))
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(min(self._body_s, GRACE_S)) as timeout:
                waiting[id(load)] = timeout
                return _replay(await self._collect(receive, load, timeout), receive)
        except TimeoutError:
            state[REFUSAL] = BodyLate(LATE)
        except ServiceBusy as error:
            state[REFUSAL] = error
        finally:
            waiting.pop(id(load), None)
            if not self._waiting[load.address]:
                del self._waiting[load.address]
        state["headers"] = {"Connection": "close"}
        return receive

    async def _collect(
        self, receive: Receive, load: Load, within: asyncio.Timeout
    ) -> HTTPRequestEvent:
        """Return all messages as one: thousands of tiny ones would take megabytes."""
        began_s = asyncio.get_running_loop().time()
        body, more = bytearray(), True
        while len(body) <= self._max_body_bytes:
            message: Any = await receive()
            if message["type"] == "http.disconnect":
                break  # the next receive returns it again
            piece, more = message.get("body", b""), message.get("more_body", False)
            body += piece
            if not more:
                break
            self._transit.add(load, len(piece))
            allowed_s = min(self._body_s, GRACE_S + len(body) / MIN_BYTES_S)
            if (within.when() or 0) > asyncio.get_running_loop().time():  # it is not being dropped
                within.reschedule(began_s + allowed_s)
        return {"type": "http.request", "body": bytes(body), "more_body": more}


def read_address(scope: Scope) -> str:
    """Return the address of a request's client; "" without one."""
    client = scope.get("client")
    return name_address(client[0]) if client else ""


def _has_body(scope: HTTPScope, max_bytes: int) -> bool:
    """Return whether the request has a body to wait for: none that its length already rules out."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return value.isdigit() and 0 < int(value) <= max_bytes
        if name == b"transfer-encoding":
            return True
    return False


def _replay(message: HTTPRequestEvent, receive: Receive) -> Receive:
    """Return a ``receive`` that replays a buffered message before new ones."""
    left = [message]

    async def take() -> Any:  # noqa: ANN401 - any message
        return left.pop() if left else await receive()

    return take


def _send_in_pieces(send: Send) -> Send:
    """Return a ``send`` that cuts large bodies; the server waits for the client between pieces."""

    async def send_pieces(message: Any) -> None:  # noqa: ANN401 - any message
        body: bytes = message.get("body", b"")
        if len(body) <= PIECE_BYTES:
            await send(message)
            return
        for at in range(0, len(body), PIECE_BYTES):
            more = at + PIECE_BYTES < len(body) or message.get("more_body", False)
            piece = body[at : at + PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": more})

    return send_pieces

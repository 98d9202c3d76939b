"""Limits connections: their number per address, the time to send a request, the time to read.

The server's parser waits for a request without a timeout, and its transport buffers what the client
does not read. A registry of all connections closes those that are silent or stop reading. It checks
every connection once a second, so no request needs a timer of its own.
"""

from __future__ import annotations

import heapq
import resource
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from tonlake.api.http.address import name_address

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Iterable

    from tonlake.api.http.outlet import Outlet

Peer = tuple[str, int]
"""Address and port of the peer."""

HEAD_S = 20.0
"""Timeout of a request's head; the first one starts when the connection opens."""

STALLED_S = 60.0
"""How long a client may leave a pending response unread."""

PRESSED_S = 5.0
"""The same limit while memory or connections are scarce."""

EVERY_S = 1.0
CLOSED_PART = 20
"""Fraction (1/20) of idle connections that is closed at a time: finding them takes a scan."""


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


class Connection(Protocol):
    """A connection as the registry sees it; implemented by `api.http.head.BoundedHead`."""

    peer: Peer
    outlet: Outlet
    silent_s: float | None
    """Since when the rest of a request is missing; None if no request is incomplete."""
    allowed_s: float
    """Timeout for the missing part."""
    progress_s: float
    """When the client last read data, or had none to read."""
    read: int
    """Bytes read by the client up to ``progress_s``."""
    shared: bool
    """Whether the connection counts against the limit of its address."""


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
        """Store the limits.

        Args:
            most: Limit of all connections.
            max_of_address: Limit of connections of one address.
            max_unsent_bytes: Limit of unsent bytes of all connections.
            clock: Returns seconds.
        """
        self._most, self._max_of_address = most, max_of_address
        self._max_unsent_bytes = max_unsent_bytes
        self._clock = clock
        self._open: dict[Peer, Connection] = {}
        self._shares: defaultdict[str, dict[Peer, Connection]] = defaultdict(dict)
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: Connection) -> bool:
        """Register a new connection; False if the limit of its address, or of all, is reached.

        Connections that have been idle longest are closed to make room.
        """
        share = self._shares[name_address(connection.peer[0])]
        full = len(share) >= self._max_of_address and not self._end_silent(share.values())
        full = full or (len(self._open) >= self._most and not self._end_silent(self._open.values()))
        if full:
            return False
        self._open[connection.peer] = connection
        # If every connection of the address was just closed, its set is a new object.
        self._shares[name_address(connection.peer[0])][connection.peer] = connection
        return True

    def _end_silent(self, connections: Collection[Connection]) -> bool:
        """Close some idle connections, the longest idle first; False if there are none."""
        silent = [(one.silent_s, one) for one in connections if one.silent_s is not None]
        count = max(1, len(connections) // CLOSED_PART)
        for _, connection in heapq.nsmallest(count, silent, key=lambda pair: pair[0]):
            self.remove(connection)
            connection.outlet.abort()
        return bool(silent)

    def remove(self, connection: Connection) -> None:
        """Unregister a closed connection."""
        if self._open.get(connection.peer) is connection:
            del self._open[connection.peer]
            self._leave_share(connection)

    def find(self, peer: Peer) -> Connection | None:
        """Return the connection with this peer."""
        return self._open.get(peer)

    def note_forwarding(self, peer: Peer) -> None:
        """Exempt a connection of a trusted proxy from the limit of its address."""
        connection = self._open.get(peer)
        if connection is not None and connection.shared:
            self._leave_share(connection)

    def _leave_share(self, connection: Connection) -> None:
        connection.shared = False
        name = name_address(connection.peer[0])
        share = self._shares[name]
        share.pop(connection.peer, None)
        if not share:
            del self._shares[name]

    def sweep(self) -> None:
        """Close connections with an overdue request and those whose client does not read."""
        now_s = self._clock()
        unsent_bytes = 0
        for connection in list(self._open.values()):
            silent_s = now_s if connection.silent_s is None else connection.silent_s
            if now_s - silent_s > connection.allowed_s and connection.outlet.is_reading():
                connection.outlet.close()
            unsent = connection.outlet.get_write_buffer_size()
            read = connection.outlet.written - unsent
            if not unsent or read != connection.read:
                connection.progress_s, connection.read = now_s, read
            elif now_s - connection.progress_s > STALLED_S:
                connection.outlet.abort()
            unsent_bytes += unsent
        if unsent_bytes > self._max_unsent_bytes:
            self._end_stalled(unsent_bytes - self._max_unsent_bytes)

    def _end_stalled(self, excess_bytes: int) -> None:
        """Close stalled connections until ``excess_bytes`` of unsent data are freed."""
        for connection in self.list_stalled(self._open.values()):
            if excess_bytes <= 0:
                return
            excess_bytes -= connection.outlet.get_write_buffer_size()
            connection.outlet.abort()

    def list_stalled(self, connections: Iterable[Connection]) -> list[Connection]:
        """Return connections that have read nothing for a while, the longest stalled first."""
        latest_s = self._clock() - PRESSED_S
        found = [one for one in connections if one.progress_s < latest_s]
        return sorted(found, key=lambda one: one.progress_s)

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

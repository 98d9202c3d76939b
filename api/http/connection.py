"""Limits of connections: a share for each address, deadlines for requests and for readers.

The server's parser waits for a request without end, and its transport keeps what a client does
not read. A registry of all connections closes those that stay silent or stop reading. Once a
second it looks at each; nothing is scheduled for a single request.
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
"""Address and port of the other end."""

HEAD_S = 20.0
"""How long a request's head may take, from the connection's first moment on."""

STALLED_S = 60.0
"""How long a client may read nothing of what waits for it."""

PRESSED_S = 5.0
"""The same where memory or connections are scarce."""

EVERY_S = 1.0
CLOSED_PART = 20
"""Of connections that crowd others out, this part is closed at once: finding them takes time."""


MOST_CONNECTIONS = 20_000
MOST_UNSENT_BYTES = 256 << 20
OTHER_FILES = 1024
"""Descriptors that are left for the files of the lake."""


def count_connections() -> int:
    """Return how many connections the process may have beside the files that it reads."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(most // 2, most - OTHER_FILES))


class Connection(Protocol):
    """What the registry knows of a connection; `api.http.head.BoundedHead` is one."""

    peer: Peer
    outlet: Outlet
    silent_s: float | None
    """Since when a part of a request is missing; None while none is."""
    allowed_s: float
    """How long that part may be missing."""
    progress_s: float
    """When the client last read something, or had nothing to read."""
    read: int
    """Bytes the client had read by then."""
    shared: bool
    """Whether the connection counts against the share of its address."""


class Connections:
    """All open connections; used by the thread of the event loop."""

    def __init__(
        self,
        *,
        most: int = MOST_CONNECTIONS,
        most_of_address: int = MOST_CONNECTIONS,
        most_unsent_bytes: int = MOST_UNSENT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the bounds.

        Args:
            most: Connections in all.
            most_of_address: Connections of one address.
            most_unsent_bytes: Bytes that may wait for clients in all.
            clock: Gives seconds.
        """
        self._most, self._most_of_address = most, most_of_address
        self._most_unsent_bytes = most_unsent_bytes
        self._clock = clock
        self._open: dict[Peer, Connection] = {}
        self._shares: defaultdict[str, dict[Peer, Connection]] = defaultdict(dict)
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, connection: Connection) -> bool:
        """Take a new connection; False where its address, or all, have as many as they may.

        Connections that have waited longest for a request give way to it.
        """
        share = self._shares[name_address(connection.peer[0])]
        full = len(share) >= self._most_of_address and not self._end_silent(share.values())
        full = full or (len(self._open) >= self._most and not self._end_silent(self._open.values()))
        if full:
            return False
        self._open[connection.peer] = connection
        # The share is another object where all that were in it have just been closed.
        self._shares[name_address(connection.peer[0])][connection.peer] = connection
        return True

    def _end_silent(self, connections: Collection[Connection]) -> bool:
        """Close some of those that wait for a request, the longest first; False if none does."""
        silent = [(one.silent_s, one) for one in connections if one.silent_s is not None]
        count = max(1, len(connections) // CLOSED_PART)
        for _, connection in heapq.nsmallest(count, silent, key=lambda pair: pair[0]):
            self.remove(connection)
            connection.outlet.abort()
        return bool(silent)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that was lost."""
        if self._open.get(connection.peer) is connection:
            del self._open[connection.peer]
            self._leave_share(connection)

    def find(self, peer: Peer) -> Connection | None:
        """Return the connection of a peer."""
        return self._open.get(peer)

    def note_forwarding(self, peer: Peer) -> None:
        """Note that a trusted proxy holds a connection: it counts in no share from now on."""
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
        """Close connections whose request is late, and those whose client does not read."""
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
        if unsent_bytes > self._most_unsent_bytes:
            self._end_stalled(unsent_bytes - self._most_unsent_bytes)

    def _end_stalled(self, excess_bytes: int) -> None:
        """Close connections that do not read until ``excess_bytes`` fewer wait."""
        for connection in self.list_stalled(self._open.values()):
            if excess_bytes <= 0:
                return
            excess_bytes -= connection.outlet.get_write_buffer_size()
            connection.outlet.abort()

    def list_stalled(self, connections: Iterable[Connection]) -> list[Connection]:
        """Return those that have read nothing for a while, the longest first."""
        latest_s = self._clock() - PRESSED_S
        found = [one for one in connections if one.progress_s < latest_s]
        return sorted(found, key=lambda one: one.progress_s)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Sweep every second from now on."""
        self._timer = loop.call_later(EVERY_S, self._sweep_again, loop)

    def _sweep_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweep()
        self.start(loop)

    def stop(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()

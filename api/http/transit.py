"""Limits the bytes buffered for clients: responses being sent and bodies being received."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tonlake.api.http.address import name_address

if TYPE_CHECKING:
    from litestar.types import Scope

    from tonlake.api.http.connection import Connections, Peer
    from tonlake.api.http.outlet import Outlet

PEER = "peer"
"""Key in the scope's state of the peer of a proxy's connection."""

FULL = "too many bytes wait for clients: read the answers that are on their way first"


class Load:
    """Bytes buffered for one request."""

    __slots__ = ("address", "held", "peer")

    def __init__(self, address: str, peer: Peer | None) -> None:
        """Start at 0 bytes."""
        self.address, self.peer, self.held = address, peer, 0


class Transit:
    """Counts the bytes of all requests; used only by the event loop's thread."""

    def __init__(self, connections: Connections, *, most: int, max_of_address: int) -> None:
        """Store the connections and the limits in bytes; that of an address fits one response."""
        self._connections = connections
        self._most, self._max_of_address = most, max_of_address
        self._of_address: defaultdict[str, int] = defaultdict(int)
        self._loads: dict[Load, None] = {}
        self.held = 0
        """Bytes buffered for all requests."""

    def open_load(self, scope: Scope) -> Load:
        """Return a new counter for the bytes of a request."""
        return Load(read_address(scope), _read_peer(scope))

    def find_outlet(self, scope: Scope) -> Outlet | None:
        """Return the outlet of a request's connection; None without a connection."""
        peer = _read_peer(scope)
        connection = None if peer is None else self._connections.find(peer)
        return None if connection is None else connection.outlet

    def add(self, load: Load, size: int) -> bool:
        """Add bytes to the count of a request; False, with none added, if a limit is exceeded.

        Under pressure, connections that have not read for some seconds are closed; only those of
        the same address if the limit of that address is exceeded.
        """
        if any(self._is_full(load.address, size)):
            self._end_stalled(load.address, size)
            if any(self._is_full(load.address, size)):
                return False
        self._loads[load] = None
        self._change(load, size)
        return True

    def release(self, load: Load) -> None:
        """Release all bytes of a request."""
        if load in self._loads:
            del self._loads[load]
            self._change(load, -load.held)

    def _change(self, load: Load, size: int) -> None:
        load.held += size
        self.held += size
        left = self._of_address[load.address] = self._of_address[load.address] + size
        if not left:
            del self._of_address[load.address]

    def _is_full(self, address: str, size: int) -> tuple[bool, bool]:
        """Return whether ``size`` more bytes exceed the limit of the address, and that of all."""
        of_address = self._of_address.get(address, 0)
        return of_address + size > self._max_of_address, self.held + size > self._most

    def _end_stalled(self, address: str, size: int) -> None:
        loads = {load.peer: load for load in self._loads if load.peer is not None}
        found = [one for peer in loads if (one := self._connections.find(peer)) is not None]
        for connection in self._connections.list_stalled(found):
            share_full, full = self._is_full(address, size)
            load = loads[connection.peer]
            if full or (share_full and load.address == address):
                self.release(load)
                connection.outlet.abort()


def _read_peer(scope: Scope) -> Peer | None:
    """Return the peer of a request's connection: a proxy or the client."""
    state: dict[str, Any] = scope.get("state") or {}
    peer: Peer | None = state.get(PEER) or scope.get("client")
    return peer


def read_address(scope: Scope) -> str:
    """Return the address of a request's client; "" without one."""
    client = scope.get("client")
    return name_address(client[0]) if client else ""

"""The outermost middleware: finds the client of a request that a proxy forwarded.

The client's address is the one that a trusted proxy names. A request forwarded by any proxy,
trusted or not, is never local, wherever its connection comes from.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tonlake.api.http.gate import FORWARDED, REQUESTS
from tonlake.api.http.transit import PEER
from tonlake.lake.errors import SettingsError

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

    from tonlake.api.http.connection import Connections

_HEADERS = frozenset(
    {
        *(b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"client-ip", b"true-client-ip"),
        *(b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-port"),
        *(b"cf-connecting-ip", b"fastly-client-ip", b"x-cluster-client-ip", b"x-forwarded"),
    }
)


class Proxies:
    """Middleware that marks forwarded requests, and sets the client's address from the headers."""

    def __init__(self, app: ASGIApp, connections: Connections, *, trusted: list[str]) -> None:
        """Store the addresses and networks of trusted proxies."""
        self._app, self._connections = app, connections
        self._forwarding: Any = ProxyHeadersMiddleware(cast("Any", self._pass_on), trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] not in REQUESTS:
            await self._app(scope, receive, send)
            return
        for name, _ in scope["headers"]:
            if name in _HEADERS:
                state = scope.setdefault("state", {})
                state[FORWARDED], state[PEER] = True, scope.get("client")
                await self._forwarding(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope["state"][PEER]
        if peer is not None and scope.get("client") != peer:
            self._connections.note_forwarding(peer)
        await self._app(scope, receive, send)


def read_networks(text: str) -> list[str]:
    """Return the addresses and networks of a comma-separated setting.

    Raises:
        SettingsError: an item is neither.
    """
    found = [part.strip() for part in text.split(",") if part.strip()]
    for part in found if found != ["*"] else ():
        try:
            ip_network(part)
        except ValueError as error:
            raise SettingsError(f"[access] trusted_proxies: {error}") from error
    return found

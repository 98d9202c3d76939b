"""The outermost layer: whose request it is, where a proxy passes it on.

The address that a trusted proxy names is the client's. A request that any proxy passed on, trusted
or not, is not one of this machine, wherever its connection comes from.
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
    """Middleware that marks forwarded requests, and takes the client's address from proxies."""

    def __init__(self, app: ASGIApp, connections: Connections, *, trusted: list[str]) -> None:
        """Take the addresses and networks of proxies whose X-Forwarded-For is believed."""
        self._app, self._connections = app, connections
        self._forwarding: Any = ProxyHeadersMiddleware(cast("Any", self._pass_on), trusted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
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
    """Return the addresses and networks of a setting, which commas separate.

    Raises:
        SettingsError: one is neither.
    """
    found = [part.strip() for part in text.split(",") if part.strip()]
    for part in found if found != ["*"] else ():
        try:
            ip_network(part)
        except ValueError as error:
            raise SettingsError(f"[access] trusted_proxies: {error}") from error
    return found

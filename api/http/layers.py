"""Composes the middleware around the application, in the order in which a request passes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.api.http.admission import Admission, Crowd
from tonlake.api.http.body import Bodies
from tonlake.api.http.connection import Connections, count_connections
from tonlake.api.http.content.cache import Cache
from tonlake.api.http.content.representation import Representations
from tonlake.api.http.gate import Gate
from tonlake.api.http.metrics import Metrics
from tonlake.api.http.pieces import Pieces
from tonlake.api.http.proxy import Proxies, read_networks
from tonlake.api.http.transit import Transit

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, Scope

    from tonlake.api.http.admission import Pulse
    from tonlake.api.http.content.cache import ResponseCache
    from tonlake.api.http.direct import Direct
    from tonlake.api.http.lane import Lanes
    from tonlake.api.settings import HttpSettings, Settings

REQUEST_BYTES = 1 << 20
"""Largest request body."""

CONNECTION_PARTS = 2
"""Connections allowed for one address, per allowed request in flight."""

BODY_PARTS = 8
"""Fraction (1/8) of all incomplete bodies that one address may have."""

TRANSIT_PARTS = 3
"""How many responses of the largest size may be buffered for all clients; one per address."""


class Parts(NamedTuple):
    """Objects that the layers share, beside the settings."""

    connections: Connections
    lanes: Lanes
    pulse: Pulse
    cache: ResponseCache
    newest: Callable[[], int | None]
    """Returns the number of the snapshot being served."""
    begin: Callable[[Scope], Callable[[str], None]]
    """Starts counting a request."""
    check: Callable[[Scope], None]
    """Checks API keys and rate limits."""


def make_connections(settings: HttpSettings) -> Connections:
    """Return a registry of connections for one server."""
    return Connections(
        most=count_connections(),
        max_of_address=CONNECTION_PARTS * settings.requests_in_flight,
        max_unsent_bytes=TRANSIT_PARTS * settings.response_bytes,
    )


def wrap_application(
    direct: Direct,
    parts: Parts,
    settings: Settings,
    *,
    any_origin: bool,
    streams: str | tuple[str, ...],
) -> ASGIApp:
    """Return the application wrapped in all layers, the outermost last.

    Args:
        direct: Answers fixed paths, and forwards other requests to the framework.
        parts: Objects that the layers share.
        settings: The limits.
        any_origin: Whether pages of every web origin get the same response.
        streams: Path prefixes of streams.

    Raises:
        SettingsError: a trusted proxy is neither an address nor a network.
    """
    http, most = settings.http, settings.http.requests_in_flight
    transit = Transit(
        parts.connections,
        most=TRANSIT_PARTS * http.response_bytes,
        max_of_address=http.response_bytes,
    )
    app: ASGIApp
    app = Admission(direct, parts.lanes, parts.pulse, max_in_flight=most, streams=streams)
    app = Bodies(
        app,
        transit,
        max_s=http.body_timeout_ms / 1000,
        max_bytes=REQUEST_BYTES,
        max_of_address=max(1, most // BODY_PARTS),
    )
    app = Cache(app, parts.cache, parts.newest, any_origin=any_origin)
    app = Representations(app, parts.cache, max_bytes=http.response_bytes, streams=streams)
    app = Pieces(app, transit, direct.refuse, streams=streams)
    app = Crowd(app, most=settings.stream.clients, streams=streams)
    app = Metrics(app, parts.begin)
    app = Gate(app, parts.check)
    trusted = read_networks(settings.access.trusted_proxies)
    return Proxies(app, parts.connections, trusted=trusted)

"""Builds the HTTP application: both versions of the API over one lake."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from litestar import Litestar, Response, Router
from litestar.config.cors import CORSConfig
from litestar.datastructures import MutableScopeHeaders, State
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, Message, Receive, Scope, Send

import tonlake.api.metrics
import tonlake.api.publish
import tonlake.api.scan.routes
import tonlake.api.sql.routes
import tonlake.api.stream.routes
import tonlake.api.tables
import tonlake.api.v2.routes
import tonlake.api.v3.routes
from tonlake.api import openapi
from tonlake.api.chain.account import AccountFetcher
from tonlake.api.errors import ApiError, status_of
from tonlake.api.explorer.routes import create_router, show_error
from tonlake.api.http import service
from tonlake.api.http.admission import WAITING_THREADS, Admission, Crowd, Pulse, Queues, ThreadQueue
from tonlake.api.http.gate import QUOTA_HEADERS, AccessRules, Gate, read_networks, refuse
from tonlake.api.http.representation import UNKEPT, Representations, ResponseCache, list_validators
from tonlake.api.http.server import REQUEST_BYTES, Connections, count_connections
from tonlake.api.http.transit import Carrier, Transit
from tonlake.api.metrics import Meter, Metrics, ServiceCollector
from tonlake.api.pending import PendingPool
from tonlake.api.request.call import STARTED_S, ApiRequest, Header, join_notes, measure_ms
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.request.table_format import HTML, choose_format, read_accept
from tonlake.api.scan.routes import ScanLane
from tonlake.api.settings import Settings
from tonlake.api.sql.pool import SqlPool
from tonlake.api.stream.hub import Hub
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import TvmError
from tonlake.lake.errors import LakeError, LakeNotFound, SnapshotNotFound
from tonlake.lake.log.digest import Recheck
from tonlake.queries.errors import QueryTimeout, QueryTooLarge

if TYPE_CHECKING:
    from tonlake.ingest.source.liteserver.query import StateServers


_PATHS_KEPT = 128


@lru_cache(_PATHS_KEPT)
def list_methods(app: Litestar, path: str) -> str:
    """Return the value of ``Allow``, for all routes of the path at once; "" if none matches."""
    parts = [part for part in path.split("/") if part]
    routes = [route for route in app.routes if isinstance(route, HTTPRoute)]
    found = [route for route in routes if _matches(route, parts)]
    found = found or [route for route in routes if _takes_rest(route, parts)]
    return ", ".join(sorted({method for route in found for method in route.methods}))


def _matches(route: HTTPRoute, parts: list[str]) -> bool:
    components = route.path_components
    return len(components) == len(parts) and all(
        one == part if isinstance(one, str) else one.type is not Path
        for one, part in zip(components, parts, strict=True)
    )


def _takes_rest(route: HTTPRoute, parts: list[str]) -> bool:
    """Return whether a route ends with a catch-all path parameter and its prefix matches."""
    *before, last = route.path_components or ("",)
    return not isinstance(last, str) and last.type is Path and parts[: len(before)] == before


LOG = logging.getLogger("tonlake.api")
RETRY_AFTER_S = "1"

CONNECTION_PARTS = 2
"""Connections allowed for one address, per allowed request in flight."""

BODY_PARTS = 8
"""Fraction (1/8) of all incomplete bodies that one address may have."""

TRANSIT_PARTS = 3
"""How many responses of the largest size may be in transit for all clients; one per address."""

VERSION = version("tonlake")
FIXED_HEADERS = [(b"x-api-version", VERSION.encode()), (b"x-content-type-options", b"nosniff")]
EXPOSED_HEADERS = [
    *("X-Tonlake-Snapshot", "X-Tonlake-Warning", "X-Tonlake-Cursor"),
    "X-Tonlake-Answered-By",
    *("X-API-Version", "X-Tonlake-Rows", "Server-timing", "ETag", "Retry-After"),
    *(name.decode() for name in QUOTA_HEADERS),
]


class Service:
    """The application with its middleware; ``state`` holds its parts."""

    def __init__(self, app: ASGIApp, state: State) -> None:
        self._app, self.state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or a lifespan event."""
        await self._app(scope, receive, send)


class _Parts(NamedTuple):
    """Objects that the layers share, beside the settings."""

    connections: Connections
    queues: Queues
    pulse: Pulse
    cache: ResponseCache
    holder: SnapshotHolder
    meter: Meter
    rules: AccessRules


def create_app(
    lake_dir: Path,
    settings: Settings,
    clock: Callable[[], float] = time.monotonic,
    servers: "StateServers | None" = None,
) -> Service:
    """Return the service over the lake in ``lake_dir``, which may still be empty.

    ``servers`` are asked for unknown accounts and closed at shutdown; ``clock`` is for rate limits.
    """
    fetcher = None if servers is None else AccountFetcher(lake_dir, servers, settings)
    meter = Meter(log_requests=settings.log.requests)
    holder = SnapshotHolder(lake_dir, settings, meter.observe_query)
    tvm = TvmPool(settings.tvm)
    sql = SqlPool(settings.sql, settings.lake, max_bytes=settings.http.response_bytes)
    scans = ScanLane(settings.scan)
    hub = Hub(lake_dir, holder, settings)
    pending = PendingPool(holder, settings, tvm, hub.publish)
    hub.watch(pending.settle)
    recheck = Recheck(holder.latest, settings.lake.recheck_s)
    layers = _make_parts(holder, meter, settings, clock)
    meter.registry.register(ServiceCollector(holder, layers.cache, tvm, recheck, hub.count_clients))

    async def start_timers() -> None:
        layers.pulse.start(asyncio.get_running_loop())
        recheck.start()
        layers.connections.start(asyncio.get_running_loop())

    state = {
        "lake_dir": lake_dir,
        "holder": holder,
        "settings": settings,
        "tvm": tvm,
        "sql": sql,
        "scans": scans,
        "end_streams": (hub.end_clients, scans.end_scans),
        "hub": hub,
        "pending": pending,
        "fetcher": fetcher,
        "meter": meter,
        "connections": layers.connections,
    }
    closing = [recheck.stop, hub.close, layers.pulse.stop, layers.connections.stop]
    closing += [layers.queues.close, holder.close]
    closing += [part.close for part in (tvm, sql, scans, fetcher) if part is not None]
    application = create_application(settings, state, [start_timers, hub.start], closing)
    meter.know_routes(route.path for route in application.routes)
    return Service(wrap_application(application, layers, settings), application.state)


def _make_parts(
    holder: SnapshotHolder, meter: Meter, settings: Settings, clock: Callable[[], float]
) -> _Parts:
    """Return what the layers around the application share."""
    http, wait_s = settings.http, settings.http.request_wait_ms / 1000
    return _Parts(
        Connections(
            most=count_connections(),
            max_of_address=CONNECTION_PARTS * http.requests_in_flight,
            max_unsent_bytes=TRANSIT_PARTS * http.response_bytes,
        ),
        Queues(
            small=ThreadQueue("small", http.request_threads, wait_s),
            large=ThreadQueue("large", http.request_threads, wait_s),
            waiting=ThreadQueue("waiting", WAITING_THREADS, wait_s),
        ),
        Pulse(),
        ResponseCache(http.cache_mib << 20),
        holder,
        meter,
        AccessRules(settings.access, http.host, clock),
    )


def wrap_application(application: Litestar, parts: _Parts, settings: Settings) -> ASGIApp:
    """Return the application wrapped in all layers, the outermost last."""
    http, most = settings.http, settings.http.requests_in_flight
    transit = Transit(
        parts.connections,
        most=TRANSIT_PARTS * http.response_bytes,
        max_of_address=http.response_bytes,
    )
    app: ASGIApp = Admission(
        application,
        parts.queues,
        parts.pulse,
        most=most,
        calm=2 * http.request_threads,
        wait_s=http.request_wait_ms / 1000,
    )
    app = Representations(
        app,
        parts.cache,
        parts.holder.newest_open,
        any_origin="*" in list_origins(settings),
        max_bytes=http.response_bytes,
    )
    app = Carrier(
        app,
        transit,
        body_s=http.body_timeout_ms / 1000,
        max_body_bytes=REQUEST_BYTES,
        max_bodies_of_address=max(1, most // BODY_PARTS),
    )
    app = Crowd(app, most=settings.stream.clients)
    app = Metrics(app, parts.meter)
    return Gate(app, parts.rules, trusted=read_networks(settings.access.trusted_proxies))


def create_application(
    settings: Settings,
    parts: dict[str, Any],
    on_startup: list[Callable[[], Any]],
    on_shutdown: list[Callable[[], Any]],
) -> Litestar:
    """Return the Litestar application: all routes, error handlers and response headers."""
    return Litestar(
        route_handlers=[
            *service.routes,
            *openapi.routes,
            *tonlake.api.metrics.routes,
            *tonlake.api.publish.routes,
            *tonlake.api.scan.routes.routes,
            *tonlake.api.sql.routes.routes,
            *tonlake.api.stream.routes.routes,
            *tonlake.api.tables.routes,
            *tonlake.api.v2.routes.routes,
            create_router(explain_error, settings.metadata),
            Router("/api/v3", route_handlers=tonlake.api.v3.routes.routes),
        ],
        state=State(parts),
        on_startup=on_startup,
        on_shutdown=on_shutdown,
        middleware=[refuse],
        before_send=[add_headers],
        exception_handlers={Exception: answer_error},
        cors_config=CORSConfig(
            allow_origins=list_origins(settings), expose_headers=EXPOSED_HEADERS
        ),
        request_max_body_size=REQUEST_BYTES,
        openapi_config=None,
        logging_config=None,
    )


def list_origins(settings: Settings) -> list[str]:
    """Return the web origins whose pages may read responses."""
    return [one.strip() for one in settings.http.cors_origins.split(",") if one.strip()]


async def add_headers(message: Message, scope: Scope) -> None:
    """Add the headers common to all responses."""
    if message["type"] != "http.response.start":
        return
    status, settings = message["status"], scope["litestar_app"].state["settings"]
    ours = [*list_headers(scope), *list_validators(scope, status, settings, VERSION)]
    names = {name for name, _ in ours}
    # Ours replace those of the handler.
    kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
    is_decided = UNKEPT[0] in names or any(name.lower() == UNKEPT[0] for name, _ in kept)
    unkept = [UNKEPT] if scope["path"].startswith("/api/") and not is_decided else []
    message["headers"] = [*kept, *ours, *unkept]
    refused = status == HTTPStatus.METHOD_NOT_ALLOWED
    if refused or scope.get("method") == "OPTIONS":
        headers = MutableScopeHeaders.from_message(message)
        if refused or "allow" in headers:
            headers["Allow"] = list_methods(scope["litestar_app"], scope["path"])


def list_headers(scope: Scope) -> list[Header]:
    """Return the headers of a response in addition to those of its handler."""
    state: dict[str, Any] = scope.get("state") or {}
    headers = [*FIXED_HEADERS]
    if STARTED_S in state:
        headers.append((b"server-timing", b"app;dur=%.1f" % measure_ms(state[STARTED_S])))
    if "snapshot" in state:
        headers.append((b"x-tonlake-snapshot", state["snapshot"].encode()))
    if answered_by := state.get("answered_by"):
        what = "mixed" if len(answered_by) > 1 else min(answered_by)
        headers.append((b"x-tonlake-answered-by", what.encode()))
    if state.get("notes"):
        headers.append((b"x-tonlake-warning", join_notes(state["notes"]).encode("latin-1")))
    given: dict[str, str] = state.get("headers") or {}
    headers += [(name.lower().encode(), text.encode("latin-1")) for name, text in given.items()]
    return headers


def answer_error(request: ApiRequest, error: Exception) -> Response[Any]:
    """Render an error in the format of the API version, or as a page for browsers."""
    status, text = explain_error(request, error)
    accept = read_accept(request.scope["headers"])
    if not request.url.path.startswith("/api/") and choose_format(accept) == HTML:
        return show_error(request, status, text)
    if request.url.path.startswith("/api/v2"):
        answer = tonlake.api.v2.routes.answer_error(request, status, text)
    else:
        body = msgspec.json.encode({"error": text})
        answer = Response(content=body, status_code=status, media_type="application/json")
    if status == 503:  # noqa: PLR2004 - Service Unavailable
        answer.headers["Retry-After"] = RETRY_AFTER_S
    return answer


def explain_error(request: ApiRequest, error: Exception) -> tuple[int, str]:
    """Return status and text of an error, without file paths or internals; log unexpected ones."""
    for kind, status, text in _FIXED_TEXTS:
        if isinstance(error, kind):
            return status, text.format(method=request.method, path=request.url.path)
    if isinstance(error, HTTPException):
        return error.status_code, error.detail
    if isinstance(error, _EXPLAINED):
        return status_of(error), str(error)
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return 500, "internal server error"


_EXPLAINED = ApiError | LakeError | QueryTimeout | QueryTooLarge | TvmError
"""Errors whose text explains them."""

_FIXED_TEXTS: tuple[tuple[type[Exception], int, str], ...] = (
    (NotFoundException, 404, "unknown path: {path}"),
    (MethodNotAllowedException, 405, "method {method} is not allowed on {path}"),
    (LakeNotFound, 503, "the lake has no commit yet; ingest something first"),
    (SnapshotNotFound, 404, "the lake has no such snapshot"),
)

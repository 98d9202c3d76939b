"""Counts requests and queries and measures their duration for Prometheus."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from tonlake.api.errors import (
    BodyLate,
    LakeUnavailable,
    RateExceeded,
    ServiceBusy,
    ShareExceeded,
)
from tonlake.api.http.gate import KEY_ID, REFUSAL, REQUEST_TYPES
from tonlake.api.metrics.logs import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from litestar.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger(REQUESTS)
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram buckets."""

UNANSWERED = "none"
"""Status of a request whose client disconnected before the response."""

UNKNOWN_ROUTE = "unknown"
STREAM_PREFIXES = ("/api/streaming/", "/api/scan")
"""Streams last as long as their clients want, so their duration is not measured."""

METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "WEBSOCKET"})
OTHER_METHOD = "other"


class Meter:
    """Counts requests by route, method and status, and queries by name; one per service.

    Labels come from bounded sets: existing routes, methods, statuses and queries, never from
    paths or parameters of clients.
    """

    def __init__(
        self,
        *,
        log_requests: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start at zero; ``clock`` returns seconds."""
        self.registry = CollectorRegistry()
        self._clock, self._log = clock, log_requests
        self._routes: frozenset[str] = frozenset()
        self._requests = Counter(
            "tonlake_requests",
            "Requests answered, by route, method and status",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._request_seconds = Histogram(
            "tonlake_request_seconds",
            "Time from a request to the end of its answer, by route",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._refusals = Counter(
            "tonlake_requests_refused",
            "Requests refused by keys and limits, or because there are too many",
            ("reason",),
            registry=self.registry,
        )
        self._in_flight = Gauge(
            "tonlake_requests_in_flight",
            "Requests being answered now, streams included",
            registry=self.registry,
        )
        self._now = 0
        self._in_flight.set_function(lambda: self._now)
        self._answered: dict[tuple[str, str], Counter] = {}
        self._known: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        self._queries = Counter(
            "tonlake_queries",
            "Named queries, by name and by what answered them: index or sql",
            ("query", "answered_by"),
            registry=self.registry,
        )
        self._query_seconds = Histogram(
            "tonlake_query_seconds",
            "Time of a named query that SQL answered, rows included, by name",
            ("query",),
            buckets=SECONDS,
            registry=self.registry,
        )

    def know_routes(self, paths: Iterable[str]) -> None:
        """Take all routes; those without parameters are recognised by their path."""
        self._routes = frozenset(path for path in paths if "{" not in path)

    def observe_query(self, name: str, seconds: float, answered_by: str) -> None:
        """Count a query answered by ``index`` or ``sql``; thread-safe."""
        labels = name, answered_by
        counter = self._answered.get(labels)
        if counter is None:
            counter = self._answered[labels] = self._queries.labels(*labels)
        counter.inc()
        # An index answer takes microseconds, and so does a histogram: it would double the cost.
        if answered_by == "sql":
            self._query_seconds.labels(name).observe(seconds)

    def begin(self, scope: Scope) -> Callable[[str], None]:
        """Begin a request; return the function to call with its status when it ends."""
        self._now += 1
        started_s = self._clock()

        return lambda status: self._note_end(scope, status, started_s)

    def _note_end(self, scope: Scope, status: str, started_s: float) -> None:
        """Count a finished request."""
        seconds = self._clock() - started_s
        self._now -= 1
        route = self._name_route(scope)
        method = str(scope.get("method", "WEBSOCKET"))
        method = method if method in METHODS else OTHER_METHOD
        counter, histogram = self._find_labelled(route, method, status)
        counter.inc()
        if not route.startswith(STREAM_PREFIXES):
            histogram.observe(seconds)
        state: dict[str, Any] = scope.get("state") or {}
        refusal = state.get(REFUSAL)
        if refusal is not None:
            self._refusals.labels(_name_reason(refusal)).inc()
        if self._log:
            fields = {
                "route": route,
                "method": method,
                "status": status,
                "duration_ms": round(seconds * 1000, 3),
                "client": (scope.get("client") or ("",))[0],
                "key_id": state.get(KEY_ID),
                "snapshot": state.get("snapshot"),
            }
            LOG.info("%s %s %s", method, route, status, extra={"fields": fields})

    def _find_labelled(self, route: str, method: str, status: str) -> tuple[Counter, Histogram]:
        """Return the cached metrics of these labels, as prometheus_client looks them up slowly."""
        labels = route, method, status
        found = self._known.get(labels)
        if found is None:
            found = self._requests.labels(*labels), self._request_seconds.labels(route)
            self._known[labels] = found
        return found

    def _name_route(self, scope: Any) -> str:  # noqa: ANN401 - a scope before and after routing
        found = scope.get("path_template")
        if found is None:
            found = scope["path"] if scope["path"] in self._routes else UNKNOWN_ROUTE
        return str(found)


def _name_reason(refusal: Exception) -> str:
    return next((reason for kind, reason in _REASONS.items() if isinstance(refusal, kind)), "key")


_REASONS = {
    ServiceBusy: "busy",
    LakeUnavailable: "busy",
    RateExceeded: "rate",
    ShareExceeded: "share",
    BodyLate: "late",
}
"""Refusal reasons by error; "key" for other errors."""


class Metrics:
    """Middleware that reports the start and the end of every request and WebSocket."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        """Store what counts the requests."""
        self._app, self._meter = app, meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] not in REQUEST_TYPES:
            await self._app(scope, receive, send)
            return
        end = self._meter.begin(scope)
        status = UNANSWERED

        def observe(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            elif message["type"] == "websocket.accept":
                status = "101"
            elif message["type"] == "websocket.close" and status == UNANSWERED:
                status = "403"
            return send(message)

        try:
            await self._app(scope, receive, observe)
        finally:
            end(status)

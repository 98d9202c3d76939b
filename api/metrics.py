"""Counts requests and queries and measures their duration for Prometheus; configures logs."""

import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Response, get
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from tonlake.api.errors import BodyLate, LakeUnavailable, RateExceeded, ServiceBusy, ShareExceeded
from tonlake.api.http.gate import KEY_ID, REFUSAL, REQUEST_TYPES, STREAMS, check_key
from tonlake.api.http.representation import ResponseCache
from tonlake.api.request.call import ApiRequest
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import LogSettings, Settings
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.support import compare_versions, list_engines
from tonlake.ingest.settings import TvmSettings
from tonlake.lake.duck.own import read_definitions, read_own_state
from tonlake.lake.errors import LakeError
from tonlake.lake.log.digest import Recheck
from tonlake.lake.log.following import measure_lag
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.unanswered import count_unanswered

REQUESTS = "tonlake.requests"
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, and request fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without a newline."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure_logs(settings: LogSettings) -> None:
    """Log warnings, the web server's too, and chosen requests to stderr in the chosen format."""
    handler = logging.StreamHandler(sys.stderr)
    is_json = settings.format == "json"
    handler.setFormatter(JsonFormatter() if is_json else logging.Formatter(TEXT))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    logging.getLogger(REQUESTS).setLevel(logging.INFO if settings.requests else logging.WARNING)


LOG = logging.getLogger(REQUESTS)
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram buckets."""

UNANSWERED = "none"
"""Status of a request whose client disconnected before the response."""

UNKNOWN_ROUTE = "unknown"
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "WEBSOCKET"})
OTHER_METHOD = "other"


class Meter:
    """Counts requests by route, method and status, and queries by name; one per service.

    Labels come from bounded sets: existing routes, methods, statuses and queries, never from
    paths or parameters of clients.
    """

    def __init__(
        self, *, log_requests: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Start at zero; ``clock`` returns seconds."""
        self.registry = CollectorRegistry()
        self._clock, self._log = clock, log_requests
        self._routes: frozenset[str] = frozenset()
        count = partial(Counter, registry=self.registry)
        measure = partial(Histogram, registry=self.registry, buckets=SECONDS)
        text = "Requests answered, by route, method and status"
        self._requests = count("tonlake_requests", text, ("route", "method", "status"))
        text = "Time from a request to the end of its answer, by route"
        self._request_seconds = measure("tonlake_request_seconds", text, ("route",))
        text = "Requests refused by keys and limits, or because there are too many"
        self._refusals = count("tonlake_requests_refused", text, ("reason",))
        self._in_flight = Gauge(
            "tonlake_requests_in_flight",
            "Requests being answered now, streams included",
            registry=self.registry,
        )
        self._now = 0
        self._in_flight.set_function(lambda: self._now)
        self._answered: dict[tuple[str, str], Counter] = {}
        self._known: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        text = "Named queries, by name and by what answered them: index or sql"
        self._queries = count("tonlake_queries", text, ("query", "answered_by"))
        text = "Time of a named query that SQL answered, rows included, by name"
        self._query_seconds = measure("tonlake_query_seconds", text, ("query",))

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
        return partial(self._note_end, scope, self._clock())

    def _note_end(self, scope: Scope, started_s: float, status: str) -> None:
        """Count a finished request."""
        seconds = self._clock() - started_s
        self._now -= 1
        state: dict[str, Any] = scope.get("state") or {}
        matched: Any = scope.get("path_template")  # only after routing
        if matched is None:
            matched = scope["path"] if scope["path"] in self._routes else UNKNOWN_ROUTE
        route = str(matched)
        method = str(scope.get("method", "WEBSOCKET"))
        method = method if method in METHODS else OTHER_METHOD
        labels = route, method, status
        known = self._known.get(labels)
        if known is None:  # prometheus_client looks them up slowly
            known = self._requests.labels(*labels), self._request_seconds.labels(route)
            self._known[labels] = known
        counter, histogram = known
        counter.inc()
        if not route.startswith(STREAMS):  # as long as clients want
            histogram.observe(seconds)
        refusal = state.get(REFUSAL)
        if refusal is not None:
            fitting = (name for kind, name in _REASONS.items() if isinstance(refusal, kind))
            self._refusals.labels(next(fitting, "key")).inc()
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


class ServiceCollector(Collector):
    """Collects metrics from the parts of a service, without opening data files."""

    def __init__(
        self,
        holder: SnapshotHolder,
        cache: ResponseCache,
        tvm: TvmPool,
        recheck: Recheck,
        count_clients: Callable[[], int],
    ) -> None:
        self._holder, self._cache, self._tvm = holder, cache, tvm
        self._recheck = recheck
        self._count_clients = count_clients

    def describe(self) -> Iterable[Metric]:
        """Return nothing, as the lake should not be read when the registry is created."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, without those of the lake if it cannot be read."""
        info = GaugeMetricFamily("tonlake_info", "The program", labels=("version",))
        info.add_metric((version("tonlake"),), 1)
        yield info
        try:
            snapshot = self._holder.reader().snapshot
        except LakeError:
            snapshot = None
        yield _gauge("lake_ready", "Whether the lake can be read", snapshot is not None)
        if snapshot is not None:
            yield from _read_lake(snapshot)
            yield from _read_versions(snapshot, self._tvm.settings)
        yield _counter("answer_cache_hits", "Responses from the cache", self._cache.hits)
        yield _counter("answer_cache_misses", "Responses not in the cache", self._cache.misses)
        yield _gauge("answer_cache_bytes", "Memory of the response cache", self._cache.size_bytes)
        rechecked, damaged = self._recheck.checked_files, self._recheck.damaged_files
        yield _counter("lake_rechecked_files", "Files whose digest was checked again", rechecked)
        yield _counter("lake_recheck_damaged_files", "Files found damaged by that", damaged)
        tvm = self._tvm.measure()
        yield _gauge("tvm_workers", "Running TVM processes", tvm.alive)
        yield _gauge("tvm_busy", "Running TVM calls", tvm.busy)
        yield _gauge("tvm_waiting", "TVM calls waiting for a process", tvm.waiting)
        yield _counter("tvm_starts", "TVM processes started", tvm.starts)
        yield _counter("tvm_restarts", "TVM processes started to replace a lost one", tvm.restarts)
        yield _gauge("stream_clients", "Clients of streams", self._count_clients())


def _read_lake(snapshot: Snapshot) -> Iterator[Metric]:
    lag = measure_lag(snapshot.lake_dir, snapshot)
    yield _counter("lake_commits", "Commits of the lake", snapshot.number)
    yield _gauge("lake_first_mc_seqno", "Oldest masterchain block", snapshot.first_mc_seqno)
    yield _gauge("lake_last_mc_seqno", "Newest masterchain block", snapshot.last_mc_seqno)
    yield _gauge("lake_missing_mc_blocks", "Masterchain blocks missing in between", lag.holes)
    yield _gauge("lake_holes", "Ranges of missing blocks", len(snapshot.ranges) - 1)
    damaged = len(snapshot.damaged) - len(snapshot.lacking)
    yield _gauge("lake_damaged_tables", "Tables with a damaged file", damaged)
    for name, text, value in (
        ("lake_lag_seconds", "Time the lake is behind its node", lag.lag_s),
        ("lake_block_age_seconds", "Age of the newest block", lag.block_age_s),
        ("node_last_mc_seqno", "Newest block of the node", lag.node_last_mc_seqno),
    ):
        if value is not None:
            yield _gauge(name, text, value)
    sizes = _gauge_by_table("lake_table_bytes", "Size of a table's files")
    rows = _gauge_by_table("lake_table_rows", "Rows of a table")
    counts = _gauge_by_table("lake_table_files", "Files of a table")
    for name, files in snapshot.files.items():
        sizes.add_metric((name,), sum(file.bytes for file in files))
        rows.add_metric((name,), sum(file.rows for file in files))
        counts.add_metric((name,), len(files))
    yield from (sizes, rows, counts)
    yield from _read_own_tables(snapshot)


def _read_versions(snapshot: Snapshot, settings: TvmSettings) -> Iterator[Metric]:
    """Yield the global versions of network and engines, and the get-methods that were not run."""
    try:
        versions = compare_versions(snapshot, list_engines(settings))
        unanswered = count_unanswered(snapshot)
    except LakeError:
        return  # reported by lake_damaged_tables
    if versions.network is not None:
        text = "Global version of the network (ConfigParam 8)"
        yield _gauge("network_global_version", text, versions.network)
    text = "Highest global version that an engine supports"
    engines = GaugeMetricFamily("tonlake_engine_global_version", text, labels=("use", "engine"))
    for each in versions.engines:
        if each.version is not None:
            engines.add_metric((each.use, each.name), each.version)
    yield engines
    count = _gauge_by_table("unanswered_methods", "Contract states whose get-method was not run")
    for table in {each.contract_table for each in unanswered}:
        states = sum(each.states for each in unanswered if each.contract_table == table)
        count.add_metric((table,), states)
    yield count


def _read_own_tables(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield the metrics of user-defined tables."""
    rows = _gauge_by_table("own_table_rows", "Rows of a user-defined table")
    failing = _gauge_by_table("own_table_failing", "Whether its last refresh failed")
    behind = _gauge_by_table("own_table_commits_behind", "Commits since its last refresh")
    for name in read_definitions(snapshot.lake_dir):
        state = read_own_state(snapshot.lake_dir, name)
        rows.add_metric((name,), state.rows)
        failing.add_metric((name,), state.error is not None)
        behind.add_metric((name,), max(0, snapshot.number - state.commit))
    yield from (rows, failing, behind)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tonlake_{name}", text, value=value)


def _gauge_by_table(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"tonlake_{name}", text, labels=("table",))


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"tonlake_{name}", text, value=value)


_TEXT_FORMAT = CONTENT_TYPE_PLAIN_0_0_4.removesuffix("; charset=utf-8")
"""Litestar adds the charset to every text type."""


@get("/metrics", sync_to_thread=True)
def answer_metrics(request: ApiRequest) -> Response[bytes]:
    """Return the service's metrics in the Prometheus text format."""
    settings: Settings = request.app.state.settings
    if not settings.metrics.public:
        check_key(request.scope, settings.http.host)
    meter: Meter = request.app.state.meter
    return Response(generate_latest(meter.registry), media_type=_TEXT_FORMAT)


routes = [answer_metrics]

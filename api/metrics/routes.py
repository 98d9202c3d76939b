"""``/metrics``: exports metrics to Prometheus."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from litestar import Response, get
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from tonlake.api.http.gate import check_key
from tonlake.api.request.call import ApiRequest  # noqa: TC001 - Litestar reads the annotations
from tonlake.ingest.derive.tvm.support import compare_versions, list_engines
from tonlake.lake.errors import LakeError
from tonlake.lake.log.following import measure_lag
from tonlake.lake.log.own import read_definitions, read_own_state
from tonlake.lake.unanswered import count_unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tonlake.api.http.representation import ResponseCache
    from tonlake.api.metrics.meter import Meter
    from tonlake.api.request.snapshot import SnapshotHolder
    from tonlake.api.settings import Settings
    from tonlake.ingest.derive.tvm.pool import TvmPool
    from tonlake.ingest.settings import TvmSettings
    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.maintenance.recheck import Recheck


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
        """Take the parts, and a function that counts stream clients."""
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
            yield _gauge("lake_ready", "Whether the lake can be read", 0)
        else:
            yield _gauge("lake_ready", "Whether the lake can be read", 1)
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
    if lag.lag_s is not None:
        yield _gauge("lake_lag_seconds", "Time the lake is behind its node", lag.lag_s)
    if lag.block_age_s is not None:
        yield _gauge("lake_block_age_seconds", "Age of the newest block", lag.block_age_s)
    if lag.node_last_mc_seqno is not None:
        yield _gauge("node_last_mc_seqno", "Newest block of the node", lag.node_last_mc_seqno)
    sizes = {
        "bytes": _gauge_by_table("lake_table_bytes", "Size of a table's files"),
        "rows": _gauge_by_table("lake_table_rows", "Rows of a table"),
        "files": _gauge_by_table("lake_table_files", "Files of a table"),
    }
    for name, files in snapshot.files.items():
        sizes["bytes"].add_metric((name,), sum(file.bytes for file in files))
        sizes["rows"].add_metric((name,), sum(file.rows for file in files))
        sizes["files"].add_metric((name,), len(files))
    yield from sizes.values()
    yield from _read_own_tables(snapshot)


def _read_versions(snapshot: Snapshot, settings: TvmSettings) -> Iterator[Metric]:
    """Yield the global versions of network and engines, and the get-methods that were not run."""
    try:
        versions = compare_versions(snapshot, list_engines(settings))
        unanswered = count_unanswered(snapshot)
    except LakeError:
        return  # lake_damaged_tables tells it
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
    """Return the service's metrics in the Prometheus text format.

    Raises:
        KeyMissing: the service is open to other machines, and the request has no key.
    """
    settings: Settings = request.app.state.settings
    if not settings.metrics.public:
        check_key(request.scope, settings.http.host)
    meter: Meter = request.app.state.meter
    return Response(generate_latest(meter.registry), media_type=_TEXT_FORMAT)


routes = [answer_metrics]

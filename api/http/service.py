"""Operations about the service itself: health, readiness, version."""

from importlib.metadata import version

import msgspec
from litestar import get
from litestar.exceptions import ServiceUnavailableException

from tonlake.api.request.call import ApiRequest, Written, answer_body, open_call, read_arguments
from tonlake.ingest.derive.tvm.support import compare_versions, list_engines
from tonlake.lake.log.following import find_lateness, measure_lag
from tonlake.lake.log.state import LOG_FOLDER, entry_name


@get(["/healthcheck", "/healthz"], media_type="text/plain", sync_to_thread=False)
def answer_health() -> str:
    """Report that the process answers."""
    return "OK"


@get("/readyz", sync_to_thread=True)
def answer_ready(request: ApiRequest) -> Written:
    """Report the served snapshot, its lag behind the followed node, and global versions.

    The status is 503 while there is no lake, also after it was moved away or replaced by an earlier
    copy, and while the lag exceeds ``ready_lag_s``.
    """
    call = open_call(request, read_arguments(request))
    snapshot = call.reader.snapshot
    entry = f"{LOG_FOLDER}/{entry_name(snapshot.number)}"
    if not (snapshot.lake_dir / entry).exists():
        raise ServiceUnavailableException(
            f"the lake has no {entry} any more, whose snapshot is served: put the lake back, or"
            " restart the service"
        )
    lag = measure_lag(snapshot.lake_dir, snapshot)
    followed = bool(request.app.state.get("followed"))
    late = find_lateness(lag, call.settings.follow.ready_lag_s, followed=followed)
    if late is not None:
        raise ServiceUnavailableException(late)
    body = {"snapshot": snapshot.number, "masterchain_ranges": snapshot.ranges, "lag": lag}
    body["versions"] = compare_versions(snapshot, list_engines(call.settings.tvm))
    if snapshot.baseline is not None:
        body["baseline"] = snapshot.baseline
    return answer_body(msgspec.json.encode(body), call.settings.http)


@get("/version", sync_to_thread=False)
def answer_version() -> dict[str, str]:
    """Name the program and its version."""
    return {"name": "tonlake", "version": version("tonlake")}


routes = [answer_health, answer_ready, answer_version]

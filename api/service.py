"""Operations about the service itself: is it up, is it ready, which version is it."""

from __future__ import annotations

from importlib.metadata import version

import msgspec
from litestar import Response, get

from api.call import ApiRequest, answer_json, open_call, read_arguments


@get(["/healthcheck", "/healthz"], media_type="text/plain", sync_to_thread=False)
def answer_health() -> str:
    """Say that the process answers."""
    return "OK"


@get("/readyz", sync_to_thread=True)
def answer_ready(request: ApiRequest) -> Response[bytes]:
    """Say which snapshot is served; 503 while there is none."""
    call = open_call(request, read_arguments(request))
    snapshot = call.reader.snapshot
    body = {"snapshot": snapshot.number, "masterchain_ranges": snapshot.ranges}
    return answer_json(msgspec.json.encode(body), call.settings)


@get("/version", sync_to_thread=False)
def answer_version() -> dict[str, str]:
    """Name the program and its version."""
    return {"name": "tonlake", "version": version("tonlake")}


routes = [answer_health, answer_ready, answer_version]

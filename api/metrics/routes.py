"""The page that Prometheus reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar import Response, get
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from tonlake.api.access.gate import KEY_WANTED
from tonlake.api.errors import KeyMissing
from tonlake.api.http.address import is_own_machine
from tonlake.api.http.gate import FORWARDED, KEY_ID
from tonlake.api.request.call import ApiRequest  # noqa: TC001 - Litestar reads the annotations

if TYPE_CHECKING:
    from tonlake.api.metrics.meter import Meter
    from tonlake.api.settings import Settings


@get("/metrics", sync_to_thread=True)
def answer_metrics(request: ApiRequest) -> Response[bytes]:
    """Show the service's figures in the text format of Prometheus.

    Raises:
        KeyMissing: others than this machine may ask the service, and the request has no key.
    """
    settings: Settings = request.app.state.settings
    local = is_own_machine(settings.http.host) and FORWARDED not in request.scope["state"]
    closed = not (settings.metrics.public or local)
    if closed and KEY_ID not in request.scope["state"]:
        raise KeyMissing(KEY_WANTED)
    meter: Meter = request.app.state.meter
    return Response(generate_latest(meter.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)


routes = [answer_metrics]

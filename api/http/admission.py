"""The layer that bounds what is under way: requests beyond it are refused, none waits for long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from tonlake.api.errors import ServiceBusy
from tonlake.api.http.gate import FREE_FOLDERS, FREE_PATHS, REFUSAL
from tonlake.api.http.lane import BUSY, TURN
from tonlake.api.request.call import STARTED_S

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

    from tonlake.api.http.lane import Lanes
    from tonlake.api.http.pulse import Pulse

METRICS = "/metrics"


class Admission:
    """Middleware that gives each request a turn in a lane, or notes that it is refused."""

    def __init__(
        self,
        app: ASGIApp,
        lanes: Lanes,
        pulse: Pulse,
        *,
        most_in_flight: int,
        streams: str | tuple[str, ...],
    ) -> None:
        """Take the bound of requests under way, and the path prefixes of streams.

        Streams last, and are bounded by number where they are sent.
        """
        self._app, self._lanes, self._pulse = app, lanes, pulse
        self._most, self._streams = most_in_flight, streams
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        if scope["type"] != ScopeType.HTTP or scope["path"].startswith(self._streams):
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        state[STARTED_S] = time.perf_counter()
        if REFUSAL not in state and not is_monitoring(scope["path"]):
            # After a pause of the whole process, the few requests that came then are answered.
            crowded = self._in_flight >= self._lanes.fewest_waiting
            waited_s = self._pulse.measure_s() if crowded else 0.0
            turn = state[TURN] = self._lanes.enter(scope)
            if self._in_flight >= self._most or turn.lane.is_late(waited_s):
                state[REFUSAL] = ServiceBusy(BUSY)
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1


def is_monitoring(path: str) -> bool:
    """Return whether a request monitors the service: it is never refused as one too many."""
    return path in FREE_PATHS or path == METRICS or path.startswith(FREE_FOLDERS)

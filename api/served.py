"""The application as it stands to the world: behind its gate, counted, and never overrun."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from api.access.gate import FREE_FOLDERS, FREE_PATHS, REFUSAL
from api.answer_cache import CachingApp
from api.call import STARTED_S
from api.errors import ServiceBusy
from api.lane import BUSY
from api.pulse import Pulse
from api.stream.routes import PREFIX

if TYPE_CHECKING:
    from api.access.gate import Gate
    from api.direct import DirectRoutes
    from api.lane import Lanes
    from api.metrics.meter import Meter


METRICS = "/metrics"


class ServedApp(CachingApp):
    """Lets the gate look at every request before anything answers it, and counts what it got.

    What was not answered before is answered by the threads of a lane, up to a bound.
    """

    def stand_behind(self, gate: Gate, meter: Meter) -> None:
        """Take the gate, and what counts."""
        self._gate, self._meter = gate, meter
        self._meter.know_routes(route.path for route in self.routes)

    def bound(self, lanes: Lanes, most: int) -> None:
        """Take the lanes, and how many requests may be on their way at once."""
        self._lanes, self._most = lanes, most
        self._in_flight = 0
        self._pulse = Pulse()

    def shorten(self, direct: DirectRoutes) -> None:
        """Take the short way that most requests go."""
        self._direct = direct

    async def take_lanes(self) -> None:
        """Let the threads of the lanes be those of the event loop that runs now, and watch it."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(self._lanes)
        self._pulse.start(loop)

    async def leave_lanes(self) -> None:
        """Watch the event loop no more; it ends its threads itself."""
        self._pulse.stop()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Answer one request, or serve the events of the process."""
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
            return
        self._gate.admit(scope)
        tracked = self._meter.track(scope, send)
        try:
            await super().__call__(scope, receive, tracked.send)
        finally:
            tracked.end()

    async def answer_anew(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Answer a request, or let it be told to come later where too many are on their way."""
        if scope["type"] != "http" or scope["path"].startswith(PREFIX):
            await super().answer_anew(scope, receive, send)  # streams last: the hub bounds them
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        state[STARTED_S] = time.perf_counter()
        if REFUSAL not in state and not is_watching(scope["path"]):
            # After a pause of the whole process, the few who ask then are answered all the same.
            crowded = self._in_flight >= self._lanes.fewest_waiting
            waited_s = self._pulse.measure_s() if crowded else 0.0
            late = self._lanes.enter(scope).is_late(waited_s)
            if late or self._in_flight >= self._most:
                state[REFUSAL] = ServiceBusy(BUSY)
        handle = self._direct.find(scope)
        self._in_flight += 1
        try:
            if handle is None:
                await super().answer_anew(scope, receive, send)
            else:
                await self._direct.answer(handle, scope, receive, send, self._lanes)
        finally:
            self._in_flight -= 1


def is_watching(path: str) -> bool:
    """Tell whether a request is of those who watch the service: it is never refused as too many."""
    return path in FREE_PATHS or path == METRICS or path.startswith(FREE_FOLDERS)

"""The application as it stands to the world: behind its gate, and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.answer_cache import CachingApp

if TYPE_CHECKING:
    from api.access.gate import Gate
    from api.metrics.meter import Meter


class ServedApp(CachingApp):
    """Lets the gate look at every request before anything answers it, and counts what it got."""

    def stand_behind(self, gate: Gate, meter: Meter) -> None:
        """Take the gate, and what counts."""
        self._gate, self._meter = gate, meter
        self._meter.know_routes(route.path for route in self.routes)

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

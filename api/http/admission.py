"""Middleware that limits requests in flight and open streams, and refuses the excess."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from litestar.enums import ScopeType

from tonlake.api.errors import LakeUnavailable, ServiceBusy, ShareExceeded
from tonlake.api.http.gate import FREE_FOLDERS, FREE_PATHS, REFUSAL, REQUESTS
from tonlake.api.http.lane import BUSY, TURN
from tonlake.api.http.transit import read_address
from tonlake.api.request.call import STARTED_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from litestar.types import ASGIApp, Receive, Scope, Send

    from tonlake.api.http.lane import Lanes

EVERY_S = 0.05


class Pulse:
    """Measures the lag of an event loop by a timer that reschedules itself."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Store the clock, which returns seconds."""
        self._clock = clock
        self._late_s = 0.0
        self._due_s = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timer."""
        self._due_s = self._clock() + EVERY_S
        self._timer = loop.call_later(EVERY_S, self._beat, loop)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._late_s = max(0.0, self._clock() - self._due_s)
        self.start(loop)

    def measure_s(self) -> float:
        """Return the lag in seconds: of the last beat, or of the next one if it is overdue."""
        return max(self._late_s, self._clock() - self._due_s)

    def stop(self) -> None:
        """Stop the timer; the lag is 0 from then on."""
        if self._timer is not None:
            self._timer.cancel()
        self._late_s, self._due_s = 0.0, math.inf


METRICS = "/metrics"


class Admission:
    """Middleware that assigns each request to a lane, or marks it as refused."""

    def __init__(
        self,
        app: ASGIApp,
        lanes: Lanes,
        pulse: Pulse,
        *,
        max_in_flight: int,
        streams: str | tuple[str, ...],
    ) -> None:
        """Store the limit of requests in flight and the path prefixes of streams.

        Streams are long-lived and not counted here; `Crowd` limits their number.
        """
        self._app, self._lanes, self._pulse = app, lanes, pulse
        self._most, self._streams = max_in_flight, streams
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] != ScopeType.HTTP or scope["path"].startswith(self._streams):
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        state[STARTED_S] = time.perf_counter()
        if REFUSAL not in state and not is_monitoring(scope["path"]):
            # After a pause of the whole process, the few requests queued meanwhile are answered.
            crowded = self._in_flight >= self._lanes.min_waiting
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
    """Return whether a request is for monitoring, which is never refused for load."""
    return path in FREE_PATHS or path == METRICS or path.startswith(FREE_FOLDERS)


SHARE = 2
"""One address may hold this fraction (1/2) of all streams."""

FIRST_MESSAGE_S = 60.0
"""How long a WebSocket may stay open without a first message."""

TOO_MANY = "too many clients of streams at once"
SHARE_FULL = "this address has {count} streams open, the most it may have"
_POLICY_VIOLATION = 1008


class Crowd:
    """Middleware that counts open streams and WebSockets, and marks the excess as refused."""

    def __init__(self, app: ASGIApp, *, most: int, streams: str | tuple[str, ...]) -> None:
        """Store the limit of streams, and the path prefixes of HTTP streams."""
        self._app, self._streams = app, streams
        self._most, self._max_of_address = most, max(1, most // SHARE)
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] not in REQUESTS or not scope["path"].startswith(self._streams):
            await self._app(scope, receive, send)
            return
        address, state = read_address(scope), scope.setdefault("state", {})
        if self._open[address] >= self._max_of_address:
            text = SHARE_FULL.format(count=self._max_of_address)
            state.setdefault(REFUSAL, ShareExceeded(text))
        if scope["type"] == ScopeType.WEBSOCKET:
            # The stream itself counts its WebSocket clients, like those over HTTP.
            if self._open.total() >= self._most:
                state.setdefault(REFUSAL, LakeUnavailable(TOO_MANY))
            receive = _time_first_message(receive, send)
        self._open[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]


def _time_first_message(receive: Receive, send: Send) -> Receive:
    """Return a ``receive`` that closes a WebSocket whose first message is late."""
    waits = True

    async def take() -> Any:  # noqa: ANN401 - any message
        nonlocal waits
        if not waits:
            return await receive()
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                message = await receive()
        except TimeoutError:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": None})
            return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION}
        waits = message["type"] == "websocket.connect"
        return message

    return take

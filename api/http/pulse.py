"""How late an event loop is: what has come waits that long before anybody looks at it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

EVERY_S = 0.05


class Pulse:
    """Asks an event loop to call it again and again, and notes how much later that happens."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock in seconds."""
        self._clock = clock
        self._late_s = 0.0
        self._due_s = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat from now on."""
        self._due_s = self._clock() + EVERY_S
        self._timer = loop.call_later(EVERY_S, self._beat, loop)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._late_s = max(0.0, self._clock() - self._due_s)
        self.start(loop)

    def measure_s(self) -> float:
        """Return how late the last beat was, or how late the next one is by now."""
        return max(self._late_s, self._clock() - self._due_s)

    def stop(self) -> None:
        """Beat no more; nothing is late then."""
        if self._timer is not None:
            self._timer.cancel()
        self._late_s, self._due_s = 0.0, math.inf

"""Threads and places of scans: apart from those of requests, so that none waits for a scan."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from tonlake.api.errors import ServiceBusy, ShareExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.api.settings import ScanSettings

T = TypeVar("T")

THREADS = 2
SHARE = 4
"""One key or address may have a quarter of all scans."""

NICENESS = 10
"""Other threads of the process come first where there are not enough cores."""


class ScanLane:
    """The scans of a service; used by the event loop's thread."""

    def __init__(self, settings: ScanSettings) -> None:
        """Take how many scans there may be; threads start with the first one."""
        self._settings = settings
        self._threads = ThreadPoolExecutor(THREADS, "scan", initializer=_stand_back)
        self._open: Counter[str] = Counter()
        self.is_closed = False

    def enter(self, client: str) -> Callable[[], None]:
        """Take a place for a client, named by key or address; return what gives it back.

        Raises:
            ServiceBusy, ShareExceeded: all places, or those of the client, are taken.
        """
        share = max(1, self._settings.clients // SHARE)
        if self._open[client] >= share:
            raise ShareExceeded(f"{share} scans are open, the most of one key or address")
        if self._open.total() >= self._settings.clients:
            raise ServiceBusy("too many scans at once")
        self._open[client] += 1
        is_held = True

        def leave() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._open[client] -= 1
                self._open += Counter()  # without those at 0

        return leave

    async def call(self, work: Callable[[], T]) -> T:
        """Do a step of a scan in a thread, behind the steps of other scans that wait."""
        return await asyncio.wrap_future(self._threads.submit(work))

    def end_scans(self) -> None:
        """Let every scan end behind the batch that it is at."""
        self.is_closed = True

    def close(self) -> None:
        """End the threads once they have done what they do."""
        self.end_scans()
        self._threads.shutdown(cancel_futures=True)


def _stand_back() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)

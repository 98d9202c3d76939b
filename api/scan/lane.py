"""Threads and client limits of scans, separate from requests, so that no request waits for one."""

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
"""One key or address may use this fraction (a quarter) of all scans."""

NICENESS = 10
"""Scan threads yield to others of the process when cores are scarce."""


class ScanLane:
    """The open scans of a service; used by the event loop's thread only."""

    def __init__(self, settings: ScanSettings) -> None:
        """Take the limits; threads start with the first scan."""
        self._settings = settings
        self._threads = ThreadPoolExecutor(THREADS, "scan", initializer=_lower_priority)
        self._open: Counter[str] = Counter()
        self.is_closed = False

    def enter(self, client: str) -> Callable[[], None]:
        """Register a scan of ``client`` (key or address); return a function that ends it.

        Raises:
            ServiceBusy, ShareExceeded: the limit of the service or of the client is reached.
        """
        share = max(1, self._settings.clients // SHARE)
        if self._open[client] >= share:
            raise ShareExceeded(f"{share} scans are open, the maximum per key or address")
        if self._open.total() >= self._settings.clients:
            raise ServiceBusy("too many scans at once")
        self._open[client] += 1
        is_held = True

        def leave() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._open[client] -= 1
                self._open += Counter()  # drops zero counts

        return leave

    async def call(self, work: Callable[[], T]) -> T:
        """Run one step of a scan in a thread, queued behind the steps of other scans."""
        return await asyncio.wrap_future(self._threads.submit(work))

    def end_scans(self) -> None:
        """Let every scan end after its current batch."""
        self.is_closed = True

    def close(self) -> None:
        """End all scans and wait for the threads."""
        self.end_scans()
        self._threads.shutdown(cancel_futures=True)


def _lower_priority() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)

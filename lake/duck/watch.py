"""Interrupts queries that exceed a time limit."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN_S = 0.05
"""A query past its limit is interrupted so often until it ends: DuckDB forgets an interrupt that
comes before the query has begun."""


class Interruptible(Protocol):
    """What can be interrupted: a connection to DuckDB."""

    def interrupt(self) -> None:
        """Make what it is doing fail, if it does anything."""


class Watch:
    """Holds the queries at work, each with the moment at which it is interrupted next."""

    def __init__(self) -> None:
        """Watch nothing; the thread is started with the first query."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_s = inf
        self._queries: dict[object, tuple[float, Interruptible]] = {}

    @contextmanager
    def limit(self, busy: Interruptible, limit_s: float) -> Iterator[None]:
        """Interrupt ``busy`` once the block has taken ``limit_s``, and again until it has ended."""
        query, due_s = object(), time.monotonic() + limit_s
        with self._changed:
            self._queries[query] = due_s, busy
            # A fork takes the watch along, but not its thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="query-watch", daemon=True)
                self._thread.start()
            elif due_s < self._wakes_s:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._queries[query]

    def _run(self) -> None:
        with self._changed:
            while True:
                self._wakes_s = self._interrupt_due(time.monotonic())
                wait_s = self._wakes_s - time.monotonic()
                self._changed.wait(None if wait_s == inf else max(0.0, wait_s))

    def _interrupt_due(self, now_s: float) -> float:
        """Interrupt what is past its limit; return when to look again."""
        for query, (due_s, busy) in self._queries.items():
            if due_s <= now_s:
                busy.interrupt()
                self._queries[query] = now_s + AGAIN_S, busy
        return min((due_s for due_s, _ in self._queries.values()), default=inf)


WATCH = Watch()
"""The one of this process."""

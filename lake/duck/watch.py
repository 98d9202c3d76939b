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
"""A query past its limit is interrupted at this interval until it ends, because DuckDB forgets an
interrupt that arrives before the query has begun."""


class Interruptible(Protocol):
    """An object that can be interrupted: a DuckDB connection."""

    def interrupt(self) -> None:
        """Make the running query fail, if there is one."""


class Watch:
    """Tracks the running queries, each with the time of its next interrupt."""

    def __init__(self) -> None:
        """Watch nothing; the first query starts the thread."""
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
            # A forked process inherits the watch, but not its thread.
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
        """Interrupt queries past their limit; return the time of the next check."""
        for query, (due_s, busy) in self._queries.items():
            if due_s <= now_s:
                busy.interrupt()
                self._queries[query] = now_s + AGAIN_S, busy
        return min((due_s for due_s, _ in self._queries.values()), default=inf)


WATCH = Watch()
"""The watch of this process."""

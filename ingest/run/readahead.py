"""Lets several workers read spans ahead of the commits, and returns their results in order.

The bytes of waiting results are limited. The next span is always read, so the limit never stops the
ingest.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from tonlake.ingest.decode.piece import Hole, Piece
from tonlake.ingest.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future


class Part(msgspec.Struct, frozen=True):
    """The first pieces and holes of a span, the size of their rows, and the rest of the span."""

    outcomes: list[Piece | Hole]
    size_bytes: int
    rest: Span | None


class _Reading:
    """A span being read."""

    def __init__(self, span: Span) -> None:
        self.rest: Span | None = span
        self.parts: deque[Part] = deque()
        self.is_busy = False


class ReadAhead:
    """Parts of spans, read by workers, at most ``tasks`` at a time, and yielded in order."""

    def __init__(
        self,
        submit: Callable[[Span], Future[Part]],
        spans: Iterable[Span],
        *,
        tasks: int,
        limit_bytes: int,
    ) -> None:
        """Start nothing yet; no task starts while ``limit_bytes`` of rows wait for a commit."""
        self._submit = submit
        self._spans = iter(spans)
        self._tasks = tasks
        self._limit_bytes = limit_bytes
        self._readings: deque[_Reading] = deque()
        self._changed = threading.Condition()
        self._waiting_bytes = 0
        self._busy = 0
        self._failure: BaseException | None = None
        self._is_over = False

    def __iter__(self) -> Iterator[list[Piece | Hole]]:
        """Yield the pieces and holes of all spans; raise errors of workers."""
        try:
            while (part := self._take()) is not None:
                yield part.outcomes
        finally:
            with self._changed:
                self._is_over = True

    def _take(self) -> Part | None:
        """Wait for the next part and return it; None at the end."""
        with self._changed:
            while True:
                while self._readings and self._readings[0].rest is None:
                    if self._readings[0].parts:
                        break
                    self._readings.popleft()
                self._begin_tasks()
                if self._failure is not None:
                    raise self._failure
                if not self._readings:
                    return None
                if self._readings[0].parts:
                    part = self._readings[0].parts.popleft()
                    self._waiting_bytes -= part.size_bytes
                    return part
                self._changed.wait()

    def _begin_tasks(self) -> None:
        """Start all tasks that may start, in the order of the spans."""
        for reading in self._readings:
            is_next = reading is self._readings[0]
            if (
                reading.rest is not None
                and not reading.is_busy
                and self._may_begin(is_next=is_next)
            ):
                self._begin(reading, reading.rest)
        while self._may_begin(is_next=not self._readings):
            span = next(self._spans, None)
            if span is None:
                break
            self._readings.append(_Reading(span))
            self._begin(self._readings[-1], span)

    def _may_begin(self, *, is_next: bool) -> bool:
        if self._is_over or self._failure is not None or self._busy >= self._tasks:
            return False
        return is_next or self._waiting_bytes < self._limit_bytes

    def _begin(self, reading: _Reading, span: Span) -> None:
        reading.is_busy = True
        self._busy += 1
        self._submit(span).add_done_callback(lambda done: self._end(reading, done))

    def _end(self, reading: _Reading, done: Future[Part]) -> None:
        """Store the result of a task; called in a worker's thread."""
        with self._changed:
            self._busy -= 1
            reading.is_busy = False
            try:
                part = done.result()
            except BaseException as error:  # noqa: BLE001 - raised to the consumer
                self._failure = error
            else:
                reading.parts.append(part)
                reading.rest = part.rest
                self._waiting_bytes += part.size_bytes
                if not self._is_over:
                    self._begin_tasks()
            self._changed.notify()

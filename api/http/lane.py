"""Thread pools ("lanes") for quick and for heavy requests, so that heavy ones delay no quick ones.

The cost of a request is predicted from earlier requests of the same shape: path and parameter
names. It decides the lane; the cheapest requests run without a thread. A request that has waited
too long is refused, and so are new ones behind it: an overloaded service answers some requests in
bounded time and refuses the rest at once.
"""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial, wraps
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from tonlake.api.errors import ServiceBusy
from tonlake.api.request.call import AT_ONCE
from tonlake.queries.errors import QueryNeeded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Future

    from litestar.types import HTTPScope, Scope

T = TypeVar("T")

AT_ONCE_S = 0.001
"""Requests cheaper than this on average run in the event loop: switching threads costs more."""

HEAVY_S = 0.010
"""Requests that cost more than this on average go to the heavy lane."""

CROWD = 4
"""Waiting counts as cost divided by this, since many threads share few cores."""

NEWEST_PART = 0.2
"""Weight of the newest request in the moving average of its shape."""

SHAPES_KEPT = 4096
WAITING_THREADS = 16
"""Threads for requests that mostly wait: for upstreams, get-methods, messages to send."""

BUSY = "too many requests at once"

Shape = tuple[str, tuple[bytes, ...]]
"""Path, and parameter names as sent."""

_LONG_QUERY = 400
_MANY_ROWS = re.compile(rb"(?:^|&)(?:limit|count)[^&=]*=[^&]{3}", re.IGNORECASE)
"""A hundred rows or more: the cost of a shape varies with the length of its list."""

TURN = "turn"
"""Key in the scope's state of the request's lane; monitoring and streams have none."""


class Lane:
    """A thread pool and its queue of requests."""

    def __init__(
        self, name: str, threads: int, wait_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Store the longest time in the queue, and the clock, both in seconds."""
        self._wait_s, self._clock = wait_s, clock
        self._threads = ThreadPoolExecutor(threads, name)
        self._numbers = count()
        self._since_s: dict[int, float] = {}

    def is_late(self, waited_s: float = 0.0) -> bool:
        """Return whether a new request would wait too long.

        It would if the first in the queue has waited for half of the allowed time, or if requests
        wait that long in the event loop, ``waited_s``, before they get here.
        """
        with suppress(StopIteration, RuntimeError):  # none waits, or the last one was just taken
            waited_s = max(waited_s, self._clock() - next(iter(self._since_s.values())))
        return waited_s > self._wait_s / 2

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue the work for a thread.

        The future raises ServiceBusy if the work waited too long.
        """
        number = next(self._numbers)
        self._since_s[number] = self._clock()
        future = self._threads.submit(self._begin, number, work)
        # A cancelled request never starts, so the queue must not count it.
        future.add_done_callback(lambda _: self._since_s.pop(number, None))
        return future

    def _begin(self, number: int, work: Callable[[], T]) -> T:
        if self._clock() - self._since_s.pop(number) > self._wait_s:
            raise ServiceBusy(BUSY)
        return work()

    def close(self) -> None:
        """Finish running work, and start no more."""
        self._threads.shutdown(cancel_futures=True)


class Turn(NamedTuple):
    """The lane of a request, and the shape under which its cost is recorded."""

    lanes: Lanes
    lane: Lane
    shape: Shape


class Lanes:
    """Assigns requests to lanes by the cost of earlier requests of their shape."""

    def __init__(
        self, *, threads: int, wait_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the lanes.

        Args:
            threads: Threads of the quick and of the heavy lane.
            wait_s: Longest time in a queue.
            clock: Returns seconds.
        """
        self.min_waiting = 2 * threads
        """With fewer requests in flight a thread is free, so none is queued."""
        self._quick = Lane("quick", threads, wait_s, clock)
        self._heavy = Lane("heavy", threads, wait_s, clock)
        self._waiting = Lane("waiting", WAITING_THREADS, wait_s, clock)
        self._costs_s: dict[Shape, float] = {}

    def enter(self, scope: HTTPScope) -> Turn:
        """Choose the lane of a request."""
        shape = read_shape(scope)
        if scope["method"] == "POST":
            return Turn(self, self._waiting, shape)
        # Many requests of an unknown shape at once would all go to the quick lane.
        unknown_s = 2 * HEAVY_S if _MANY_ROWS.search(scope["query_string"]) else 0.0
        is_heavy = self._costs_s.get(shape, unknown_s) > HEAVY_S
        return Turn(self, self._heavy if is_heavy else self._quick, shape)

    def is_small(self, scope: HTTPScope) -> bool:
        """Return whether a request is short and its shape has been cheap so far."""
        query = scope["query_string"]
        if len(query) > _LONG_QUERY or _MANY_ROWS.search(query):
            return False
        return self._costs_s.get(read_shape(scope), AT_ONCE_S) < AT_ONCE_S

    def call_at_once(self, work: Callable[[], T], shape: Shape) -> T:
        """Do the work of a small request in this thread.

        Raises:
            QueryNeeded: the index cannot answer; its shape counts as expensive for a while.
        """
        began_s = time.perf_counter()
        try:
            found = work()
        except QueryNeeded:
            self.note_cost(shape, HEAVY_S)
            raise
        # Thread time costs a system call to read. Elapsed time is an upper bound; where it is much
        # larger, other threads may have run, so a single such request carries little information.
        self.note_cost(shape, min(time.perf_counter() - began_s, 2 * AT_ONCE_S))
        return found

    def measure(self, shape: Shape, work: Callable[[], T]) -> T:
        """Do the work of a request, and record its cost."""
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        try:
            return work()
        finally:
            cpu_s = time.thread_time() - cpu_s
            self.note_cost(shape, max(cpu_s, (time.perf_counter() - began_s) / CROWD))

    def note_cost(self, shape: Shape, cost_s: float) -> None:
        """Add the cost of a request to the average of its shape."""
        known_s = self._costs_s.get(shape)
        if known_s is None and len(self._costs_s) >= SHAPES_KEPT:
            self._costs_s.clear()
        known_s = cost_s if known_s is None else known_s
        self._costs_s[shape] = known_s + NEWEST_PART * (cost_s - known_s)

    def close(self) -> None:
        """Stop all threads after their current work."""
        for lane in (self._quick, self._heavy, self._waiting):
            lane.close()


async def call_in_lane(work: Callable[[], T], scope: Scope, *, unwaiting: bool = False) -> T:
    """Do the work of a request in a thread of its lane, or in this thread if it is small.

    Args:
        work: Answers the request.
        scope: Scope of the request; if it has no lane, the loop's default threads are used.
        unwaiting: Whether the work waits only for its reader, not for a process or a lock.

    Raises:
        ServiceBusy: the request waited too long in the queue.
    """
    turn: Turn | None = scope["state"].get(TURN)
    if turn is None:
        return await asyncio.to_thread(work)
    if unwaiting and turn.lanes.is_small(cast("HTTPScope", scope)):
        state, before = scope["state"], dict(scope["state"])
        state[AT_ONCE] = True
        try:
            return turn.lanes.call_at_once(work, turn.shape)
        except QueryNeeded:
            state.clear()
            state.update(before)
    work = partial(copy_context().run, work)
    return await asyncio.wrap_future(
        turn.lane.submit(partial(turn.lanes.measure, turn.shape, work))
    )


def in_lane(handle: Callable[..., T], *, unwaiting: bool = False) -> Callable[..., Awaitable[T]]:
    """Return a handler for the framework that runs ``handle`` in the request's lane.

    The first parameter of the handler must be named ``request``.
    """

    @wraps(handle)
    async def call(**inputs: Any) -> T:  # noqa: ANN401 - what the framework binds
        work = partial(handle, **inputs)
        return await call_in_lane(work, inputs["request"].scope, unwaiting=unwaiting)

    return call


def read_shape(scope: HTTPScope) -> Shape:
    """Return the shape of a request; names in the paths of pages are left out."""
    path = scope["path"]
    if not path.startswith("/api/"):
        path = path[: path.find("/", 1) + 1] or path
    query = scope["query_string"]
    names = tuple(part.partition(b"=")[0] for part in query.split(b"&")) if query else ()
    return path, names

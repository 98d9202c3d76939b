"""Threads that answer requests, in lanes: what takes long does not hold up what is quick.

A request is known by its shape, the path and the names of its parameters; how long such requests
have taken decides which lane it goes to; one that costs next to nothing needs none. A request that
has waited too long for its turn is refused, and so are new ones while those before them wait: an
overloaded service answers what it can in bounded time, and refuses the others at once.
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
"""What costs less than this, on average, is not worth a thread: to go there and back costs more."""

HEAVY_S = 0.010
"""What costs a thread more than this, on average, is not quick."""

CROWD = 4
"""Waiting is a part of the cost, divided by this: many threads take turns on few cores."""

NEWEST_PART = 0.2
"""How much the newest request of a shape weighs in the average of all before it."""

SHAPES_KEPT = 4096
WAITING_THREADS = 16
"""Requests that others are asked for, get-methods, messages to send: they mostly wait."""

BUSY = "too many requests at once"

Shape = tuple[str, tuple[bytes, ...]]
"""Path, and names of parameters as they were sent."""

_LONG_QUERY = 400
_MANY_ROWS = re.compile(rb"(?:^|&)(?:limit|count)[^&=]*=[^&]{3}", re.IGNORECASE)
"""A hundred rows, or more: requests of one shape differ in cost by what they list."""

TURN = "turn"
"""Where the scope's state holds the lane of a request; monitoring and streams have none."""


class Lane:
    """A few threads, and the requests that wait for one of them."""

    def __init__(
        self, name: str, threads: int, wait_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take how long a request may wait for its turn, and a clock in seconds."""
        self._wait_s, self._clock = wait_s, clock
        self._threads = ThreadPoolExecutor(threads, name)
        self._numbers = count()
        self._since_s: dict[int, float] = {}

    def is_late(self, waited_s: float = 0.0) -> bool:
        """Return whether a request that comes now would wait too long.

        It would where the first that waits has waited for half of what is allowed, or where
        requests wait for half of that, ``waited_s``, before they come here at all.
        """
        with suppress(StopIteration, RuntimeError):  # none waits, or one was taken just now
            waited_s = max(waited_s, self._clock() - next(iter(self._since_s.values())))
        return waited_s > self._wait_s / 2

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let a thread do the work when its turn comes.

        The future raises ServiceBusy if that took too long.
        """
        number = next(self._numbers)
        self._since_s[number] = self._clock()
        future = self._threads.submit(self._begin, number, work)
        # One that is cancelled never begins, and is not to be waited for.
        future.add_done_callback(lambda _: self._since_s.pop(number, None))
        return future

    def _begin(self, number: int, work: Callable[[], T]) -> T:
        if self._clock() - self._since_s.pop(number) > self._wait_s:
            raise ServiceBusy(BUSY)
        return work()

    def close(self) -> None:
        """Let what has begun end, and nothing else begin."""
        self._threads.shutdown(cancel_futures=True)


class Turn(NamedTuple):
    """A request's place: the lane it belongs to, and the shape that its cost is noted under."""

    lanes: Lanes
    lane: Lane
    shape: Shape


class Lanes:
    """Sorts requests into lanes by what requests of their shape have cost."""

    def __init__(
        self, *, threads: int, wait_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start the lanes.

        Args:
            threads: Threads of the quick lane, and of the heavy one.
            wait_s: How long a request may wait for its turn.
            clock: Gives the seconds that waiting is measured by.
        """
        self.fewest_waiting = 2 * threads
        """With fewer requests under way, a thread is free: none waits for those before it."""
        self._quick = Lane("quick", threads, wait_s, clock)
        self._heavy = Lane("heavy", threads, wait_s, clock)
        self._waiting = Lane("waiting", WAITING_THREADS, wait_s, clock)
        self._costs_s: dict[Shape, float] = {}

    def enter(self, scope: HTTPScope) -> Turn:
        """Choose the lane of a request."""
        shape = read_shape(scope)
        if scope["method"] == "POST":
            return Turn(self, self._waiting, shape)
        # Many of an unknown shape at once would all be quick until the first one has ended.
        unknown_s = 2 * HEAVY_S if _MANY_ROWS.search(scope["query_string"]) else 0.0
        is_heavy = self._costs_s.get(shape, unknown_s) > HEAVY_S
        return Turn(self, self._heavy if is_heavy else self._quick, shape)

    def is_small(self, scope: HTTPScope) -> bool:
        """Return whether a request asks for little, and such ones have cost little."""
        query = scope["query_string"]
        if len(query) > _LONG_QUERY or _MANY_ROWS.search(query):
            return False
        return self._costs_s.get(read_shape(scope), AT_ONCE_S) < AT_ONCE_S

    def call_at_once(self, work: Callable[[], T], shape: Shape) -> T:
        """Do the work of a small request in this thread.

        Raises:
            QueryNeeded: it is not that small; for a while such requests are not.
        """
        began_s = time.perf_counter()
        try:
            found = work()
        except QueryNeeded:
            self.note_cost(shape, HEAVY_S)
            raise
        # The time of a thread takes a call of the system to read. That which went by is no less;
        # where it is much more, others may have had it: one such request says little.
        self.note_cost(shape, min(time.perf_counter() - began_s, 2 * AT_ONCE_S))
        return found

    def measure(self, shape: Shape, work: Callable[[], T]) -> T:
        """Do the work of a request, and note its cost."""
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        try:
            return work()
        finally:
            cpu_s = time.thread_time() - cpu_s
            self.note_cost(shape, max(cpu_s, (time.perf_counter() - began_s) / CROWD))

    def note_cost(self, shape: Shape, cost_s: float) -> None:
        """Take into account what a request of this shape has cost."""
        known_s = self._costs_s.get(shape)
        if known_s is None and len(self._costs_s) >= SHAPES_KEPT:
            self._costs_s.clear()
        known_s = cost_s if known_s is None else known_s
        self._costs_s[shape] = known_s + NEWEST_PART * (cost_s - known_s)

    def close(self) -> None:
        """End all threads once they have done what they do."""
        for lane in (self._quick, self._heavy, self._waiting):
            lane.close()


async def call_in_lane(work: Callable[[], T], scope: Scope, *, unwaiting: bool = False) -> T:
    """Do the work of a request: in a thread of its lane, or here where it is small.

    Args:
        work: Answers the request.
        scope: Of the request; without a turn any thread of the event loop does the work.
        unwaiting: Whether the work waits for nothing but its reader: no process, no lock.

    Raises:
        ServiceBusy: the request has waited too long for its turn.
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
    """Return a handler for the framework that does the work of ``handle`` in a request's lane.

    Its first parameter is the request, by the name ``request``.
    """

    @wraps(handle)
    async def call(**inputs: Any) -> T:  # noqa: ANN401 - what the framework binds
        work = partial(handle, **inputs)
        return await call_in_lane(work, inputs["request"].scope, unwaiting=unwaiting)

    return call


def read_shape(scope: HTTPScope) -> Shape:
    """Return what requests of equal cost have in common; a page's path has a name in it."""
    path = scope["path"]
    if not path.startswith("/api/"):
        path = path[: path.find("/", 1) + 1] or path
    query = scope["query_string"]
    names = tuple(part.partition(b"=")[0] for part in query.split(b"&")) if query else ()
    return path, names

"""Threads that answer requests, in lanes: what takes long does not hold up what is quick.

A request is known by its shape, the path and the names of its parameters; how long such requests
have taken says which lane it goes to; one that costs next to nothing needs none. A request that has
waited too long for its turn is refused, and so are new ones while those before them wait: a service
that is asked too much answers what it can in bounded time, and the others are told at once to come
later.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from api.errors import ServiceBusy
from queries.errors import QueryNeeded

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from litestar.types import HTTPScope

    from api.settings import HttpSettings

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

BACKGROUND_THREADS = 2
BUSY = "too many requests at once"

Shape = tuple[str, tuple[bytes, ...]]
"""Path, and names of parameters as they were sent."""

_LONG_QUERY = 400
_MANY_ROWS = re.compile(rb"(?:^|&)(?:limit|count)[^&=]*=[^&]{3}", re.IGNORECASE)
"""A hundred rows, or more: requests of one shape differ in cost by what they list."""

_CHOSEN: ContextVar[tuple[Lane, Shape] | None] = ContextVar("chosen", default=None)


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
        """Tell whether a request that comes now would wait too long.

        It would where the first that waits has waited for half of what is allowed, or where
        requests wait for half of that, ``waited_s``, before they come here at all.
        """
        with suppress(StopIteration, RuntimeError):  # nobody waits; one was taken just now
            waited_s = max(waited_s, self._clock() - next(iter(self._since_s.values())))
        return waited_s > self._wait_s / 2

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Let a thread do the work when its turn comes.

        The future raises ServiceBusy if that took too long.
        """
        number = next(self._numbers)
        self._since_s[number] = self._clock()
        future = self._threads.submit(self._begin, number, work)
        # One that is cancelled never begins, and is not to be waited for.
        future.add_done_callback(lambda _: self._since_s.pop(number, None))
        return future

    def _begin(self, number: int, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - of the work
        if self._clock() - self._since_s.pop(number) > self._wait_s:
            raise ServiceBusy(BUSY)
        return work()

    def close(self) -> None:
        """Let what has begun end, and nothing else begin."""
        self._threads.shutdown(cancel_futures=True)


class Lanes(ThreadPoolExecutor):
    """Takes the place of an event loop's threads, and sorts what requests want of them.

    Work that no request is behind has threads of its own.
    """

    def __init__(self, settings: HttpSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Make the lanes; ``clock`` gives the seconds that waiting is measured by."""
        super().__init__(BACKGROUND_THREADS, "background")
        wait_s, threads = settings.request_wait_ms / 1000, settings.request_threads
        self.fewest_waiting = 2 * threads
        """With fewer requests on their way, a thread is free: nobody waits for those before."""
        self._quick = Lane("quick", threads, wait_s, clock)
        self._heavy = Lane("heavy", threads, wait_s, clock)
        self._waiting = Lane("waiting", WAITING_THREADS, wait_s, clock)
        self._costs_s: dict[Shape, float] = {}

    def choose(self, scope: HTTPScope) -> Lane:
        """Return the lane that a request belongs to."""
        return self._choose(scope, read_shape(scope))

    def _choose(self, scope: HTTPScope, shape: Shape) -> Lane:
        if scope["method"] == "POST":
            return self._waiting
        is_heavy = self._costs_s.get(shape, 0.0) > HEAVY_S
        return self._heavy if is_heavy else self._quick

    def enter(self, scope: HTTPScope) -> Lane:
        """Choose a lane for all that is submitted from now on in this context, and return it."""
        shape = read_shape(scope)
        lane = self._choose(scope, shape)
        _CHOSEN.set((lane, shape))
        return lane

    def is_small(self, scope: HTTPScope) -> bool:
        """Tell whether a request asks for little, and such ones have cost little."""
        query = scope["query_string"]
        if len(query) > _LONG_QUERY or _MANY_ROWS.search(query):
            return False
        return self._costs_s.get(read_shape(scope), AT_ONCE_S) < AT_ONCE_S

    def do_at_once(self, work: Callable[[], Any], scope: HTTPScope) -> Any:  # noqa: ANN401
        """Do the work of a small request here and now.

        Raises:
            QueryNeeded: it is not that small; for a while such requests are not.
        """
        shape, began_s = read_shape(scope), time.perf_counter()
        try:
            found = work()
        except QueryNeeded:
            self.note_cost(shape, HEAVY_S)
            raise
        # The time of a thread takes a call of the system to read. That which went by is no less;
        # where it is much more, others may have had it: one such request says little.
        self.note_cost(shape, min(time.perf_counter() - began_s, 2 * AT_ONCE_S))
        return found

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Let a thread call ``fn``: one of the lane that was chosen for the request at hand."""
        found = _CHOSEN.get()
        if found is None:
            return super().submit(fn, *args, **kwargs)
        lane, shape = found
        return lane.submit(partial(self._measure, shape, partial(fn, *args, **kwargs)))

    def _measure(self, shape: Shape, work: Callable[[], Any]) -> Any:  # noqa: ANN401
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

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """End all threads once they have done what they do."""
        for lane in (self._quick, self._heavy, self._waiting):
            lane.close()
        super().shutdown(wait, cancel_futures=cancel_futures)


def read_shape(scope: HTTPScope) -> Shape:
    """Return what requests of equal cost have in common; a page's path has a name in it."""
    path = scope["path"]
    if not path.startswith("/api/"):
        path = path[: path.find("/", 1) + 1] or path
    query = scope["query_string"]
    names = tuple(part.partition(b"=")[0] for part in query.split(b"&")) if query else ()
    return path, names

"""Admission: limits requests in flight and open streams, and runs requests in threads.

A small request that the index in memory answers runs in the event loop, since switching threads
costs more than its answer. Others queue for a few threads: small ones that need files, those that
ask for many rows, and those that wait for other services, each kind apart. A request that has
waited too long is refused, and so are new ones behind it: an overloaded service answers some
requests in bounded time and refuses the rest at once.
"""

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from itertools import count
from typing import Any, NamedTuple, TypeVar

from litestar import Response
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from tonlake.api.errors import LakeUnavailable, ServiceBusy, ShareExceeded
from tonlake.api.http.gate import FREE_FOLDERS, FREE_PATHS, REFUSAL, REQUEST_TYPES, STREAMS
from tonlake.api.http.transit import hold, read_address
from tonlake.api.request.call import AT_ONCE, STARTED_S, ApiRequest, Written
from tonlake.queries.errors import QueryNeeded

T = TypeVar("T")

WAITING_THREADS = 16

BUSY = "too many requests at once"

QUEUE = "queue"
"""Key in the scope's state of the queue of a request; monitoring and streams have none."""

_LONG_QUERY = 400
_MANY_ROWS = re.compile(
    rb"(?:^|&)(?:(?:limit|count)[^&=]*=[^&]{3}|offset[^&=]*=[^&]{4})", re.IGNORECASE
)
"""A hundred rows or more, or a thousand to pass over."""

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


class ThreadQueue:
    """A thread pool and its queue of requests."""

    def __init__(
        self, name: str, threads: int, wait_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Store the longest time in the queue, and the clock, both in seconds."""
        self.name, self._wait_s, self._clock = name, wait_s, clock
        self._threads = ThreadPoolExecutor(threads, name)
        self._numbers = count()
        self._since_s: dict[int, float] = {}

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue the work for a thread; the future raises ServiceBusy if it waited too long.

        Raises ServiceBusy if the first in the queue has waited for half of the allowed time.
        """
        with suppress(StopIteration, RuntimeError):  # none waits, or the last one was just taken
            if self._clock() - next(iter(self._since_s.values())) > self._wait_s / 2:
                raise ServiceBusy(BUSY)
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


class Queues(NamedTuple):
    """The queues of a service."""

    small: ThreadQueue
    large: ThreadQueue
    """For requests that ask for many rows."""
    waiting: ThreadQueue
    """For requests that wait for others: for upstreams, get-methods, messages to send."""

    def choose(self, scope: HTTPScope) -> ThreadQueue:
        """Return the queue of a request."""
        if scope["method"] == "POST":
            return self.waiting
        return self.small if is_small(scope) else self.large

    def close(self) -> None:
        """Stop all threads after their current work."""
        for queue in self:
            queue.close()


def in_queue(handle: Callable[..., T], *, unwaiting: bool = False) -> Callable[..., Awaitable[T]]:
    """Return a handler for the framework that runs ``handle``, with a ``request``, in a thread.

    If it is ``unwaiting``, so waits only for its reader, not for a process or a lock, a small
    request runs in the event loop, if the index in memory can answer it.
    """

    @wraps(handle)
    async def call(**inputs: Any) -> T:  # noqa: ANN401 - what the framework binds
        request: ApiRequest = inputs["request"]
        queue: ThreadQueue | None = request.scope["state"].get(QUEUE)
        work = partial(handle, **inputs)
        if queue is None:
            return await asyncio.to_thread(work)
        is_quick = unwaiting and queue.name == "small"
        answer = call_at_once(work, request.scope["state"]) if is_quick else None
        if answer is None:
            answer = await asyncio.wrap_future(queue.submit(work))
        if isinstance(answer, Response | Written):
            hold(request.scope, len(answer.body if isinstance(answer, Written) else answer.content))
        return answer

    return call


def call_at_once(work: Callable[[], T], state: dict[str, Any]) -> T | None:
    """Do the work of a request in this thread; return None if it needs files."""
    before = dict(state)
    state[AT_ONCE] = True
    try:
        return work()
    except QueryNeeded:
        state.clear()
        state.update(before)
        return None


def is_small(scope: Scope) -> bool:
    """Return whether a request is short, and asks for few rows that are near the first."""
    query: bytes = scope["query_string"]
    return len(query) <= _LONG_QUERY and not _MANY_ROWS.search(query)


METRICS = "/metrics"


class Admission:
    """Middleware that assigns each request to a queue, or marks it as refused."""

    def __init__(
        self, app: ASGIApp, queues: Queues, pulse: Pulse, *, most: int, calm: int, wait_s: float
    ) -> None:
        """Store the limits: ``most`` in flight, and as lag half of the longest wait for a thread.

        With at most ``calm`` in flight none is refused for the lag: after a pause of the whole
        process, those that came meanwhile are answered.
        """
        self._app, self._queues, self._pulse = app, queues, pulse
        self._most, self._calm, self._max_lag_s = most, calm, wait_s / 2
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] != ScopeType.HTTP or scope["path"].startswith(STREAMS):
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        state[STARTED_S] = time.perf_counter()
        path = scope["path"]
        # Monitoring is never refused for load.
        is_watch = path in FREE_PATHS or path == METRICS or path.startswith(FREE_FOLDERS)
        if REFUSAL not in state and not is_watch:
            state[QUEUE] = self._queues.choose(scope)
            is_late = self._in_flight >= self._calm and self._pulse.measure_s() > self._max_lag_s
            if is_late or self._in_flight >= self._most:
                state[REFUSAL] = ServiceBusy(BUSY)
        self._in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= 1


SHARE = 2
"""One address may hold this fraction (1/2) of all streams."""

FIRST_MESSAGE_S = 60.0
"""How long a WebSocket may stay open without a first message."""

TOO_MANY = "too many clients of streams at once"
SHARE_FULL = "this address has {count} streams open, the most it may have"
_POLICY_VIOLATION = 1008


class Crowd:
    """Middleware that counts open streams and WebSockets, and marks the excess as refused."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most, self._max_of_address = most, max(1, most // SHARE)
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request to the next layer."""
        if scope["type"] not in REQUEST_TYPES or not scope["path"].startswith(STREAMS):
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

"""Sends the events of new commits to all stream clients, and replays old ones on reconnect.

One task reads commits in order; each event is made once and offered to the clients that may want
it. A client with a last event id first gets the events since, read from the lake by the same code,
and then joins the live clients between two commits: no event is lost or sent twice, even if the
server was restarted meanwhile.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, TypeVar

from tonlake.api.errors import LakeUnavailable, RequestInvalid
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.api.stream.confirmed import ConfirmedBlocks
from tonlake.api.stream.event import (
    CONFIRMED,
    TYPES,
    Client,
    ClientIndex,
    Cursor,
    Event,
    Subscription,
    make_undoing,
)
from tonlake.api.stream.rendering import Chunk, CommitRows, EventMaker
from tonlake.lake.cache import Cache
from tonlake.lake.errors import BlocksLacking, LakeError
from tonlake.lake.log.state import read_first
from tonlake.queries.errors import QueryTimeout

CLIENT_EVENTS = 10_000
"""Maximum backlog of a client, which is closed beyond it."""

_Plan = tuple[Event | None, list[Chunk]]
"""The events of a commit: of undone blocks, or those of its chunks."""

T = TypeVar("T")

LOG = logging.getLogger("tonlake.stream")

LOOK_EVERY_S = 0.02
"""Interval at which the hub looks for a new commit."""

READERS = 2
"""Threads that read commits."""

WATCH_S = 1.0
"""Maximum interval between calls of the watcher, which is also called after each commit."""

KEPT_EVENTS = 20_000
"""Approximate size of the event cache, for clients that reconnect at the same time."""


def _weigh(_key: object, events: list[Event]) -> int:
    """Return the weight of events in the cache, in which the newest ones always fit."""
    return min(len(events) + 1, KEPT_EVENTS)  # an empty list takes memory, too


def _explain(error: Exception) -> str:
    """Return why a stream ends; an unforeseen error is in the log alone."""
    is_known = isinstance(error, LakeError | QueryTimeout)
    shown = error if is_known else "an error of the server, see its log"
    return f"the lake cannot be read: {shown}"


class Hub:
    """All stream clients of a server."""

    def __init__(self, lake_dir: Path, holder: SnapshotHolder, settings: Settings) -> None:
        """Take the lake; nothing is read before ``start``."""
        self._lake_dir, self._holder = lake_dir, holder
        self._settings = settings
        self._rows = CommitRows(lake_dir)
        self._maker = EventMaker(self._rows, holder, settings)
        self._confirmed = ConfirmedBlocks(lake_dir, self._rows, self._maker, holder, settings)
        self._newest = 0
        """The last commit whose events were offered to all clients."""
        self._clients: set[Client] = set()
        self._live = ClientIndex()
        self._turn = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._kept: Cache[tuple[Chunk, str], list[Event]] = Cache(KEPT_EVENTS, _weigh)
        self._readers = ThreadPoolExecutor(READERS, "streams")
        self._threads: set[asyncio.Future[Any]] = set()
        self._task: asyncio.Task[None] | None = None
        self._watcher: Callable[[], None] | None = None
        self._watched_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, watcher: Callable[[], None]) -> None:
        """Register a function to call in a thread after every commit and every second."""
        self._watcher = watcher

    async def start(self) -> None:
        """Start to follow commits, beginning after the newest one."""
        self._loop = asyncio.get_running_loop()
        self._holder.is_opened_ahead = True
        self._newest = await self._in_thread(self._holder.newest_number)
        await self._offer_confirmed(TYPES)  # those of before a restart
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Close all clients and stop following."""
        self.end_clients()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        # Threads outlive the tasks that wait for them, and use parts that are closed next.
        await asyncio.gather(*self._threads, return_exceptions=True)
        self._readers.shutdown(wait=False)

    def count_clients(self) -> int:
        """Return the number of clients."""
        return len(self._clients)

    def end_clients(self) -> None:
        """Close all clients, sending each the reason."""
        for client in self._clients:
            client.close("the server is stopping: reconnect with last_event_id")

    def join(self, subscription: Subscription, cursor: Cursor | None) -> Client:
        """Add a client that begins after ``cursor``; None begins with the next commit."""
        if len(self._clients) >= self._settings.stream.clients:
            raise LakeUnavailable("too many stream clients")
        newest = max(self._newest, self._holder.newest_number())
        if cursor is not None and cursor.commit > newest + 1:
            asked = f"last_event_id is of commit {cursor.commit}"
            raise RequestInvalid(f"{asked}, but the newest of the lake is {newest}")
        if cursor is not None and cursor.commit < (first := read_first(self._lake_dir)):
            asked = f"last_event_id is of commit {cursor.commit}, and the log begins with {first}"
            raise RequestInvalid(f"{asked}: subscribe again without it")
        start = Cursor(self._newest + 1) if cursor is None else cursor
        client = Client(subscription, start, CLIENT_EVENTS)
        self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        """Remove a client."""
        self._clients.discard(client)
        self._live.remove(client)

    async def follow(self, client: Client, wait_s: float) -> AsyncGenerator[list[Event], None]:
        """Yield lists of events for a client, past ones first; [] after ``wait_s`` without any.

        It ends when the client is closed, and always removes it.
        """
        try:
            async with aclosing(self._list_past(client)) as past:
                async for events in past:
                    if client.fault is not None:
                        break
                    if events:
                        yield events
            while client.fault is None:
                events = await client.take(wait_s)
                if not events and client.fault is None:
                    client.pass_over(Cursor(self._newest + 1))
                if events or client.fault is None:
                    yield events
        except BlocksLacking as error:
            client.close(str(error))
        except Exception as error:
            LOG.exception("past commits cannot be sent to a client")
            client.close(_explain(error))
        finally:
            self.leave(client)

    async def _list_past(self, client: Client) -> AsyncGenerator[list[Event], None]:
        """Yield the past events that the client wants, in order, then make it a live client."""
        while True:
            for number in range(max(1, client.sent.commit), self._newest + 1):
                async for events in self._read(number, client.subscription.types, client.sent):
                    after, accepts = client.sent, client.subscription.accepts
                    yield [one for one in events if (one.cursor or after) > after and accepts(one)]
                client.pass_over(Cursor(number + 1))
            async with self._turn:
                if client.sent.commit > self._newest:
                    self._live.add(client)
                    return

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Run ``work`` in a thread that ``close`` waits for."""
        future = asyncio.get_running_loop().run_in_executor(self._readers, work, *arguments)
        self._threads.add(future)
        future.add_done_callback(self._threads.discard)
        return await asyncio.shield(future)

    def publish(self, events: list[Event]) -> None:
        """Offer events that are not from a commit; thread-safe."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._offer, events)

    async def _run(self) -> None:
        while True:
            pause_s = LOOK_EVERY_S
            try:
                await self._look()
            except Exception:  # clients would wait for events that never come
                LOG.exception("new commits cannot be looked for")
                pause_s = WATCH_S
            await asyncio.sleep(pause_s)

    async def _look(self) -> None:
        """Offer the events of all new commits and signed blocks, and call the watcher."""
        newest = self._holder.newest_number()
        is_new = self._newest < newest
        if is_new:  # before its events: a request that follows one finds the commit open
            await self._in_thread(self._holder.open_ahead)
        while self._newest < newest:
            async with self._turn:
                await self._advance(newest)
        await self._offer_confirmed()
        if self._watcher is not None and (is_new or time.monotonic() - self._watched_s > WATCH_S):
            self._watched_s = time.monotonic()
            await self._in_thread(self._watcher)

    async def _advance(self, newest: int) -> None:
        """Offer the events of the next commit; without clients skip to the newest commit."""
        types = self._live.list_types()
        if not types:
            self._newest = newest
            self._confirmed.forget()
            return
        try:
            async for events in self._read(self._newest + 1, types, Cursor(0)):
                self._offer(events)
            async with self._reading:
                self._offer(await self._in_thread(self._confirmed.settle, self._newest + 1))
        except Exception as error:
            LOG.exception("commit %d cannot be sent to clients", self._newest + 1)
            for client in self._live.clients:
                client.close(_explain(error))
            self._live = ClientIndex()
        self._newest += 1

    async def _offer_confirmed(self, types: Collection[str] = ()) -> None:
        """Offer the events of signed blocks, of ``types`` or those that clients want, if any."""
        if not self._confirmed.is_changed():
            return
        types = types or self._live.list_types(CONFIRMED)
        if not types:
            return
        try:
            async with self._reading:
                self._offer(await self._in_thread(self._confirmed.make, types, self._newest))
        except Exception:
            LOG.exception("signed blocks cannot be sent to clients")

    def _offer(self, events: Iterable[Event]) -> None:
        for event in events:
            for client in self._live.find(event):
                if client.subscription.accepts(event) and not client.push(event):
                    self._live.remove(client)

    async def _read(
        self, number: int, types: Iterable[str], after: Cursor
    ) -> AsyncGenerator[list[Event], None]:
        """Yield the events of a commit, in order, one chunk of blocks at a time."""
        undoing, chunks = await self._in_thread(self._plan, number)
        if undoing is not None:
            yield [undoing]
        for chunk in chunks:
            if number == after.commit and chunk.last < after.mc_seqno:
                continue
            events: list[Event] = []
            for kind in TYPES:
                if kind in types:
                    # Usually another client has just requested the same events.
                    found = self._kept.get((chunk, kind))
                    events += await self._make(chunk, kind) if found is None else found
            # Last: files may go while they are read.
            await self._in_thread(self._rows.check_kept, chunk)
            yield sorted(events, key=lambda event: event.cursor or after)

    def _plan(self, number: int) -> _Plan:
        """Return the plan of a commit."""
        undone = self._rows.find_undone(number)
        undoing = None if undone is None else make_undoing(number, *undone)
        return undoing, self._rows.list_chunks(number)

    async def _make(self, chunk: Chunk, kind: str) -> list[Event]:
        async with self._reading:
            found = self._kept.get((chunk, kind))
            if found is None:
                found = await self._in_thread(self._maker.make, chunk, kind)
                self._kept.put((chunk, kind), found)
            return found

"""``POST /api/scan``: streams rows in chain order, as fast as the client reads them.

Scans have threads and limits of their own, so that no request waits for one.
"""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import msgspec
from litestar import post
from litestar.datastructures import State
from litestar.params import RawBody
from litestar.response import Stream

from tonlake.api.errors import RequestInvalid, ServiceBusy, ShareExceeded
from tonlake.api.http.gate import KEY_ID, STREAMS
from tonlake.api.http.transit import read_address
from tonlake.api.request.call import ApiRequest
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.request.table_format import ARROW, JSON, choose_format, read_accept
from tonlake.api.scan.frames import FRAMES, MARKED, NDJSON, SCAN_TYPES, BatchMark
from tonlake.api.scan.opening import open_scan
from tonlake.api.scan.query import Scan
from tonlake.api.settings import ScanSettings
from tonlake.lake.scan.scanner import ScannedBatch

T = TypeVar("T")

PATH = STREAMS[1]
POLL_S = 0.1
"""Interval at which a following scan looks for a new commit."""

KEEP_ALIVE_S = 15.0
"""An idle client is sent its cursor after this long."""

PIECE_BYTES = 256 << 10
"""Bytes written to a connection at once; the next write waits until most of them were read."""

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
        self._threads = ThreadPoolExecutor(
            THREADS,
            "scan",
            lambda: os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS),
        )
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


@post(PATH, status_code=200)
async def answer_scan(request: ApiRequest, body: RawBody) -> Stream:
    """Stream the rows that match a scan, batch by batch; raises as ``open_scan`` and ``enter``."""
    try:
        scan = msgspec.json.decode(body, type=Scan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"invalid scan: {error}") from error
    accept = read_accept(request.scope["headers"])
    chosen = choose_format(accept) or ARROW
    if NDJSON in accept.lower() or chosen == JSON:
        chosen = NDJSON
    form = chosen if chosen in SCAN_TYPES else ARROW
    if scan.follow and form not in MARKED:
        raise RequestInvalid(f"follow needs {' or '.join(SCAN_TYPES[one] for one in MARKED)}")
    state = request.app.state
    lane: ScanLane = state.scans
    key = request.scope["state"].get(KEY_ID)
    leave = lane.enter(f"key {key}" if key else read_address(request.scope))
    try:
        run = await lane.call(partial(_Run, state, scan, form, leave))
        first = await lane.call(run.scanner.advance)
    except BaseException:
        leave()
        raise
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Accel-Buffering": "no"}
    return Stream(run.write(first), media_type=SCAN_TYPES[form], headers=headers)


class _Run:
    """A scan running for one client."""

    def __init__(self, state: State, scan: Scan, form: str, leave: Callable[[], None]) -> None:
        holder: SnapshotHolder = state.holder
        self._lane: ScanLane = state.scans
        self._holder, self._leave, self._follow = holder, leave, scan.follow
        self.scanner = open_scan(
            scan, holder.reader(), state.settings.lake, lambda: holder.reader().snapshot
        )
        self._frames = FRAMES[form](self.scanner.source.schema)

    def __del__(self) -> None:
        self._leave()  # the client may disconnect before anything is written

    async def write(self, batch: ScannedBatch | None) -> AsyncIterator[bytes]:
        """Yield the chunks of the response body."""
        try:
            yield self._frames.begin()
            while not self._lane.is_closed:
                if batch is None:
                    if self.scanner.is_over:
                        break
                    batch = await self._wait()
                cursor = batch.cursor
                mark = BatchMark(str(cursor), cursor.height, batch.undone, dict(batch.misfits))
                data = await self._lane.call(partial(self._frames.write, batch.rows, mark))
                for at in range(0, len(data), PIECE_BYTES):
                    yield data[at : at + PIECE_BYTES]
                batch = await self._lane.call(self.scanner.advance)
            if not self._follow and not self.scanner.is_over:
                raise ServiceBusy("the service is stopping")  # shows that rows are missing
            yield self._frames.end()
        finally:
            self._leave()

    async def _wait(self) -> ScannedBatch:
        """Return the next batch, or an empty one after ``KEEP_ALIVE_S``."""
        ends_s = time.monotonic() + KEEP_ALIVE_S
        while time.monotonic() < ends_s and not self._lane.is_closed:
            if self._holder.newest_number() != self.scanner.cursor.commit:
                batch = await self._lane.call(self.scanner.advance)
                if batch is not None:
                    return batch
            await asyncio.sleep(POLL_S)
        return ScannedBatch(self.scanner.source.schema.empty_table(), self.scanner.cursor)


routes: list[Any] = [answer_scan]

"""``POST /api/scan``: streams rows in chain order, as fast as the client reads them."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from litestar import post
from litestar.params import RawBody  # noqa: TC002 - Litestar reads the annotations
from litestar.response import Stream

from tonlake.api.errors import RequestInvalid, ServiceBusy
from tonlake.api.http.gate import KEY_ID
from tonlake.api.http.transit import read_address
from tonlake.api.request.call import ApiRequest  # noqa: TC001 - Litestar reads the annotations
from tonlake.api.scan.frames import MARKED, SCAN_TYPES, Mark, choose_form, make_frames
from tonlake.api.scan.opening import open_scan
from tonlake.api.scan.query import read_scan
from tonlake.lake.scan.scanner import Batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tonlake.api.request.snapshot import SnapshotHolder
    from tonlake.api.scan.frames import Frames
    from tonlake.api.scan.lane import ScanLane
    from tonlake.api.scan.query import Scan
    from tonlake.lake.scan.scanner import Scanner
    from tonlake.lake.settings import LakeSettings

PATH = "/api/scan"
POLL_S = 0.1
"""Interval at which a following scan looks for a new commit."""

KEEP_ALIVE_S = 15.0
"""An idle client is sent its cursor after this long."""

PIECE_BYTES = 256 << 10
"""Bytes written to a connection at once; the next write waits until most of them were read."""


@post(PATH, status_code=200)
async def answer_scan(request: ApiRequest, body: RawBody) -> Stream:
    """Stream the rows that match a scan, batch by batch.

    Raises:
        RequestInvalid, ScanError: the scan cannot be run.
        ServiceBusy, ShareExceeded: too many scans are open.
    """
    scan = read_scan(body)
    form = choose_form(request.headers.get("accept", ""))
    if scan.follow and form not in MARKED:
        raise RequestInvalid(f"follow needs {' or '.join(SCAN_TYPES[one] for one in MARKED)}")
    state = request.app.state
    lane: ScanLane = state.scans
    key = request.scope["state"].get(KEY_ID)
    leave = lane.enter(f"key {key}" if key else read_address(request.scope))
    try:
        run = await lane.call(
            partial(_Run, lane, state.holder, state.settings.lake, scan, form, leave)
        )
        first = await lane.call(run.scanner.advance)
    except BaseException:
        leave()
        raise
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "X-Accel-Buffering": "no"}
    return Stream(run.write(first), media_type=SCAN_TYPES[form], headers=headers)


class _Run:
    """A scan running for one client."""

    def __init__(
        self,
        lane: ScanLane,
        holder: SnapshotHolder,
        settings: LakeSettings,
        scan: Scan,
        form: str,
        leave: Callable[[], None],
    ) -> None:
        reader = holder.reader()
        lake_dir = reader.snapshot.lake_dir
        self._lane, self._holder, self._leave = lane, holder, leave
        self._follow = scan.follow
        self.scanner: Scanner = open_scan(
            scan,
            reader,
            settings,
            open_newest=holder.reader,
            open_file=lambda path: nullcontext(str(lake_dir / path)),
        )
        self._frames: Frames = make_frames(form, self.scanner.source.schema)

    def __del__(self) -> None:
        self._leave()  # the client may disconnect before anything is written

    async def write(self, batch: Batch | None) -> AsyncIterator[bytes]:
        """Yield the chunks of the response body."""
        try:
            yield bytes(self._frames.begin())
            while not self._lane.is_closed:
                if batch is None:
                    if self.scanner.is_over:
                        break
                    batch = await self._wait()
                data = await self._lane.call(
                    partial(self._frames.write, batch.rows, _make_mark(batch))
                )
                with memoryview(data) as view:
                    for at in range(0, len(data), PIECE_BYTES):
                        yield bytes(view[at : at + PIECE_BYTES])
                batch = await self._lane.call(self.scanner.advance)
            if not self._follow and not self.scanner.is_over:
                raise ServiceBusy("the service is stopping")  # shows that rows are missing
            yield bytes(self._frames.end())
        finally:
            self.scanner.close()
            self._leave()

    async def _wait(self) -> Batch:
        """Return the next batch, or an empty one after ``KEEP_ALIVE_S``."""
        ends_s = time.monotonic() + KEEP_ALIVE_S
        while time.monotonic() < ends_s and not self._lane.is_closed:
            if self._holder.newest_number() != self.scanner.cursor.commit:
                batch = await self._lane.call(self.scanner.advance)
                if batch is not None:
                    return batch
            await asyncio.sleep(POLL_S)
        return Batch(self.scanner.source.schema.empty_table(), self.scanner.cursor)


def _make_mark(batch: Batch) -> Mark:
    return Mark(str(batch.cursor), batch.cursor.height, batch.undone, dict(batch.misfits))


routes: list[Any] = [answer_scan]

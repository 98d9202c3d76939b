"""Keeps the newest snapshot of a lake open, and returns readers of it or of an older one."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from tonlake.api.errors import NotCovered
from tonlake.api.settings import Settings
from tonlake.lake.cache import Cache
from tonlake.lake.duck.connection import Database, SnapshotViews
from tonlake.lake.errors import LakeCorrupt, LakeError
from tonlake.lake.index.index import Index, open_index
from tonlake.lake.log.ranges import overlaps
from tonlake.lake.log.snapshot import Snapshot, open_snapshot
from tonlake.lake.log.state import LOG_FOLDER, SEGMENT_FOLDER, LogReader, entry_name, list_log
from tonlake.lake.system import return_memory
from tonlake.queries.errors import QueryError, QueryNeeded
from tonlake.queries.reader import Reader

LOG = logging.getLogger("tonlake.api")
LOOK_EVERY_S = 0.02
"""How often the log is checked for a newer commit; a check is one ``stat`` call."""

ATTENTION_S = 5.0
"""How long after a request new commits are opened ahead of the next one."""

AHEAD_S = 0.25
"""How long requests use the previous snapshot while a new commit is opened ahead of them."""

KEPT_SNAPSHOTS = 4
"""How many snapshots stay open: the newest, those that requests name, and the ones before."""

RETURNED_AFTER = 32
"""Free memory goes back to the system once in this number of commits: snapshots leave the heaps of
threads in pieces, 12 MiB more of them free after 1,000 commits of 110 transactions."""

KEPT_PASTS = 8
"""How many past masterchain blocks have their views cached."""


class _Opened:
    """A snapshot with its database and index."""

    def __init__(self, snapshot: Snapshot, views: SnapshotViews, settings: Settings) -> None:
        self.snapshot = snapshot
        self.views = views
        self.lasting: dict[str, Any] = {}
        self.used_s = float("-inf")
        """When a request named it last."""
        # Before it is published: until then requests wait for it, or use the previous snapshot.
        self.index: Index | None = None
        if snapshot.bound is None:
            self.index = open_index(snapshot, settings.lake)
        self.memory = None if self.index is None else self.index.without_files()


class SnapshotHolder:
    """Opens each snapshot once and shares it; every reader has its own cursor."""

    def __init__(
        self,
        lake_dir: Path,
        settings: Settings,
        observe: Callable[[str, float, str], None] | None = None,
    ) -> None:
        """Store the lake's folder; nothing is opened before the first query.

        ``observe`` is passed to every reader.
        """
        self._observe = observe
        self._lake_dir = lake_dir
        self._settings = settings
        self._database = Database(lake_dir, settings.lake)
        self._log = LogReader(lake_dir)
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._kept: OrderedDict[int, _Opened] = OrderedDict()
        self._pasts: Cache[tuple[int, int], _Opened] = Cache(KEPT_PASTS)
        self._newest = self._prepared = 0
        self._asked_s = self._looked_s = self._noticed_s = float("-inf")
        self.is_opened_ahead = False
        """Whether ``open_ahead`` is called soon after each commit."""
        self._reported: set[str] = set()

    def reader(
        self,
        number: int | None = None,
        *,
        timeout_ms: int | None = None,
        waits: bool = False,
        at_once: bool = False,
        mc_seqno: int | None = None,
    ) -> Reader:
        """Return a reader of the newest snapshot, or of commit ``number``.

        While that is opened, it is the one before, unless the caller ``waits``. With
        ``mc_seqno`` it reads the lake as of that masterchain block, by SQL only; with
        ``at_once`` no files: QueryNeeded if the snapshot is not open. Others: LakeNotFound,
        SnapshotNotFound, NotCovered, LakeCorrupt.
        """
        if at_once:
            opened = self._find_open(number)
        else:
            opened = self._open_newest(waits=waits) if number is None else self._open(number)
        if number is not None:
            opened.used_s = time.monotonic()
        try:
            opened.snapshot.watch.check(SEGMENT_FOLDER)
        except LakeCorrupt:
            LOG.exception("an index segment was damaged while it was open")
        if opened.snapshot.watch.damaged:
            self._drop(opened)
            return self.reader(
                number, timeout_ms=timeout_ms, waits=waits, at_once=at_once, mc_seqno=mc_seqno
            )
        if mc_seqno is not None:
            opened = self._open_past(opened, mc_seqno)
        limit_ms = self._settings.http.query_timeout_ms if timeout_ms is None else timeout_ms
        return Reader(
            opened.snapshot,
            opened.views,
            index=opened.memory if at_once else opened.index,
            lasting=opened.lasting,
            timeout_ms=limit_ms,
            max_rows=self._settings.http.query_rows,
            observe=self._observe,
            may_query=not at_once,
        )

    def _drop(self, opened: _Opened) -> None:
        """Drop a snapshot with a damaged file, so that it is reopened without that file."""
        with self._lock:
            if self._kept.get(opened.snapshot.number) is opened:
                del self._kept[opened.snapshot.number]
            for kept in self._kept.values():
                kept.snapshot.checked_until_s = float("-inf")

    def _open_past(self, opened: _Opened, mc_seqno: int) -> _Opened:
        """Return the lake as of a masterchain block."""
        snapshot = opened.snapshot
        if not overlaps(snapshot.ranges, (mc_seqno, mc_seqno)):
            held = ", ".join(f"{first} to {last}" for first, last in snapshot.ranges)
            raise NotCovered(
                f"masterchain block {mc_seqno} is not in the lake, which covers {held}"
            )
        key = snapshot.number, mc_seqno
        with self._lock:
            found = self._pasts.get(key)
            if found is None:
                past = snapshot.up_to(mc_seqno)
                opened = _Opened(past, self._database.open(past), self._settings)
                found = self._pasts.put(key, opened)
        return found

    def _find_open(self, number: int | None) -> _Opened:
        requested = self.newest_open() if number is None else number
        found = None if requested is None else self._kept.get(requested)
        if found is None:
            raise QueryNeeded("the snapshot is not open yet")
        return found

    def newest_number(self) -> int:
        """Return the number of the newest commit, looked up each ``LOOK_EVERY_S``; 0: none."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_EVERY_S:
            return self._newest
        folder, newest = self._lake_dir / LOG_FOLDER, self._newest
        if not (folder / entry_name(newest)).exists():  # it may have been removed long ago
            newest = max(list_log(self._lake_dir)[0], default=0)
        while (folder / entry_name(newest + 1)).exists():
            newest += 1
        if newest != self._newest == self._prepared:
            self._noticed_s = now_s
        self._newest, self._looked_s = newest, now_s
        return newest

    def _prepared_number(self) -> int:
        """Return the number of the newest commit, or the one before while it is opened ahead."""
        newest = self.newest_number()
        is_awaited = self.is_opened_ahead and time.monotonic() - self._noticed_s < AHEAD_S
        return self._prepared if is_awaited and self._prepared in self._kept else newest

    def newest_open(self) -> int | None:
        """Return the number of the snapshot that serves new requests; None: the next opens it."""
        newest = self._prepared_number()
        if newest in self._kept:
            return newest
        return max(self._kept, default=None) if self._opening.locked() else None

    def expect(self) -> None:
        """Note a request: commits of the next seconds are opened ahead of others."""
        self._asked_s = time.monotonic()

    def open_ahead(self) -> None:
        """Open the newest snapshot, with the views in use, unless no request came for long."""
        since_s = time.monotonic() - ATTENTION_S
        earlier = self._find_latest()
        try:
            if self._asked_s < since_s:
                return
            opened = self._open_newest(waits=True)
            opened.views.provide_ahead(since_s)
            if earlier is not None and earlier.index is not None and opened.index is not None:
                opened.index.open_ahead(earlier.index)
                self.reader(opened.snapshot.number).repeat_lasting([*earlier.lasting])
            self._prepared = opened.snapshot.number
        except (LakeError, QueryError, OSError, duckdb.Error):
            LOG.exception("a commit cannot be opened ahead of requests")
        finally:
            self._noticed_s = float("-inf")

    def latest(self) -> Snapshot | None:
        """Return the newest open snapshot; None before the first."""
        found = self._find_latest()
        return None if found is None else found.snapshot

    def close(self) -> None:
        """Release every snapshot; readers still in use keep theirs."""
        with self._lock:
            self._kept = OrderedDict()
            self._pasts = Cache(KEPT_PASTS)
        self._database.close()

    def _open_newest(self, *, waits: bool) -> _Opened:
        """Open the newest snapshot; other threads wait for it, or use the one before."""
        newest = self.newest_number() if waits else self._prepared_number()
        found = self._kept.get(newest) or self._find_latest()
        if found is not None and found.snapshot.number >= newest:
            return found
        if not self._opening.acquire(blocking=waits or found is None) and found is not None:
            return found
        try:
            latest = self._find_latest()
            if latest is None or latest.snapshot.number < newest:
                latest = self._connect(None)
            return latest
        finally:
            self._opening.release()

    def _find_latest(self) -> _Opened | None:
        with self._lock:
            return next(reversed(self._kept.values()), None)

    def _open(self, number: int) -> _Opened:
        with self._lock:
            if number in self._kept:
                return self._kept[number]
        with self._opening:
            return self._kept.get(number) or self._connect(number)

    def _connect(self, number: int | None) -> _Opened:
        """Open a snapshot and store it; the caller holds ``_opening``."""
        check = self._settings.lake.check_digests
        earlier = None if number is not None else self.latest()
        try:
            snapshot = open_snapshot(
                self._lake_dir, number, check_digests=check, log=self._log, earlier=earlier
            )
        except LakeCorrupt as error:
            self._report({str(error)})
            raise
        self._report(_describe_damage(snapshot))
        opened = _Opened(snapshot, self._database.open(snapshot), self._settings)
        if number is not None:
            opened.used_s = time.monotonic()
        with self._lock:
            kept = OrderedDict(sorted({**self._kept, snapshot.number: opened}.items()))
            while len(kept) > KEPT_SNAPSHOTS:
                del kept[min([*kept][:-1], key=lambda one: kept[one].used_s)]
            self._kept = kept
        if snapshot.number % RETURNED_AFTER == 0:
            return_memory()
        return opened

    def _report(self, damage: set[str]) -> None:
        """Log what is damaged, when it is found; ``verify`` lists all of it."""
        for text in sorted(damage - self._reported):
            LOG.error(text)
        self._reported = damage


def _describe_damage(snapshot: Snapshot) -> set[str]:
    """Return a text for each damaged table, and one for each index segment left to SQL."""
    lacking = snapshot.lacking
    found = {str(error) for name, error in snapshot.damaged.items() if name not in lacking}
    return found | {
        f"lake file {segment.path} is damaged: SQL answers; tonlake rebuild index repairs it"
        for segment in set(snapshot.state.segments) - set(snapshot.segments)
    }

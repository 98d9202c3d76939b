"""Rereads all files of an open lake from disk over a day, and compares them with their digests.

Bit rot below the file system changes no mtime, and Parquet footers have no checksum, so only
reading the file again reveals it.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.digest import find_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tonlake.lake.log.snapshot import Snapshot
    from tonlake.lake.log.state import DataFile

LOG = logging.getLogger("tonlake.lake")

_IDLE_S = 1.0
"""Pause while there is no snapshot, and the minimum between two rounds."""


class Recheck:
    """A thread that rereads every file of the newest snapshot once per period, evenly spread."""

    def __init__(self, newest: Callable[[], Snapshot | None], period_s: float) -> None:
        """Take ``newest``, which returns the open snapshot or None; a period of 0 means never."""
        self._newest, self._period_s = newest, period_s
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.checked_files = self.damaged_files = 0

    def start(self) -> None:
        """Start, unless the period is 0."""
        if self._period_s > 0 and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recheck", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the current file."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            for pause_s in self.check_round():
                if self._stopped.wait(pause_s):
                    return
            self._stopped.wait(_IDLE_S)

    def check_round(self) -> Iterator[float]:
        """Check every file of the current newest snapshot; yield the pause before each.

        Files that maintenance has removed meanwhile are skipped.
        """
        snapshot = self._newest()
        if snapshot is None:
            return
        files = [file for group in snapshot.sound_files().values() for file in group]
        files += snapshot.segments
        size = sum(file.bytes for file in files) or 1
        for file in files:
            yield self._period_s * file.bytes / size
            self._check(snapshot, file)

    def _check(self, snapshot: Snapshot, file: DataFile) -> None:
        try:
            drop_cached_pages(snapshot, file)
        except FileNotFoundError:
            return
        except OSError as error:
            damage = [LakeCorrupt.unreadable(file.path, error)]
        else:
            damage = find_damage(snapshot.lake_dir, [file])
        self.checked_files += 1
        for found in damage:
            self.damaged_files += 1
            snapshot.watch.damaged = True
            LOG.error("recheck: %s", found)


def drop_cached_pages(snapshot: Snapshot, file: DataFile) -> None:
    """Drop a file from the kernel's page cache, so that the next read is from disk.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(snapshot.lake_dir / file.path, os.O_RDONLY)
    try:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)

"""Maintains a growing lake: builds index segments, merges small files, prunes old days.

Next to a writer that is a separate process, which exits once it has grown large: merging takes the
memory of many rows, and no allocator returns all of it. It waits for more work, because to start it
costs more than maintenance after sixteen commits.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec

from tonlake.lake.errors import LakeError
from tonlake.lake.file.rows import KEPT_PACKS
from tonlake.lake.index.builder.plan import choose_rows
from tonlake.lake.index.builder.rebuild import SEGMENT_ROWS, rebuild_index
from tonlake.lake.index.index import KeptRows
from tonlake.lake.log.state import LogReader
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.own import NICENESS, Refresher
from tonlake.lake.maintenance.removal import prune_old_days
from tonlake.lake.process import Child, run_child, start_child
from tonlake.lake.settings import LakeSettings
from tonlake.lake.system import read_peak_mib

WAITS_S = 60.0
"""Work begins this long after a commit, however few came since."""

MAX_MIB = 256
"""A process that has grown beyond this exits after its work; the next work starts another."""

EASY_ROWS = 32_000
"""Small segments first: of 60,000 transactions, one takes 350 MiB to build."""

KEPT_BYTES = 32 << 20
"""Cache of rows that are read for the index and then merged: small files are slow to read."""


class Done(msgspec.Struct, frozen=True):
    """The reply of the process when its work is done."""

    failure: str = ""
    ends: bool = False
    """Whether the process takes no more work."""


def maintain_once(log: LogReader, settings: LakeSettings) -> None:
    """Build segments, merge files that have one, and prune old days."""
    kept = KeptRows(KEPT_BYTES, KEPT_PACKS)
    if settings.build_index:
        indexed = sum(segment.rows for segment in log.find().segments)
        rows = choose_rows(indexed, SEGMENT_ROWS, EASY_ROWS)
        # One by one: work for many blocks that waited must not be lost with a killed process.
        rebuild_index(log.lake_dir, max_rows=rows, at_once=False, read=kept.keep_whole, log=log)
    compact_lake(log.lake_dir, settings, depth="tail", log=log, kept=kept)
    prune_old_days(log, settings)


class Maintenance:
    """Maintains a lake in a separate process, while the writer goes on."""

    def __init__(
        self, lake_dir: Path, settings: LakeSettings, on_failure: Callable[[str], None]
    ) -> None:
        """Start with work due; ``on_failure`` is called with failures, and the work is retried.

        If it counted from zero, a lake whose writer is often killed would never be maintained.
        """
        self._lake_dir = lake_dir
        self._settings = settings
        self._on_failure = on_failure
        self._commits = settings.maintenance_commits
        self._waits_since_s: float | None = None
        self._thread = threading.Thread()
        self._child: Child | None = None
        self._tables = Refresher(lake_dir, settings, on_failure)

    def count(self, commits: int) -> None:
        """Count new commits, and start work if it is due and none is running."""
        now_s = time.monotonic()
        if commits:
            self._tables.wake()
            self._commits += commits
            self._waits_since_s = self._waits_since_s or now_s
        due_after = self._settings.maintenance_commits
        if due_after == 0 or self._waits_since_s is None or self._thread.is_alive():
            return
        due_s = self._waits_since_s + WAITS_S
        if self._commits < due_after and now_s < due_s:
            return
        self._commits, self._waits_since_s = 0, None
        # A daemon thread, as a commit is complete or absent wherever the process ends.
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        self._thread.start()

    @property
    def behind(self) -> int:
        """The commits counted since the running work began; 0 if none is running."""
        return self._commits if self._thread.is_alive() else 0

    def wait(self) -> None:
        """Wait until the running work is done."""
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Wait for the running work, and end the process."""
        self._tables.close()
        self.wait()
        self._end_process()

    def _work(self) -> None:
        try:
            failure = self._ask_process()
        except (OSError, msgspec.DecodeError) as error:  # it died, perhaps while writing its reply
            code = self._end_process()
            failure = f"its process ended with code {code}" if code else str(error)
        if failure:
            self._on_failure(failure)

    def _ask_process(self) -> str:
        """Let the process do its work; return the failure, if any."""
        if self._child is None:
            self._child = start_child("tonlake.lake.maintenance.schedule", self._lake_dir)
        self._child.send(self._settings)
        done = msgspec.json.decode(self._child.replies.readline(), type=Done)
        if done.ends:
            self._end_process()
        return done.failure

    def _end_process(self) -> int:
        """End the process, if there is one, and return its exit code."""
        child, self._child = self._child, None
        if child is None:
            return 0
        child.process.communicate()
        return child.process.returncode


def main() -> NoReturn:
    """Run the process: reply to each line of JSON, which has settings, with a line of JSON."""
    lake_dir = Path(sys.argv[1])
    os.nice(NICENESS)
    run_child(lambda: _work_on(LogReader(lake_dir)))


def _work_on(log: LogReader) -> int:
    for line in sys.stdin.buffer:
        failure = ""
        try:
            maintain_once(log, msgspec.json.decode(line, type=LakeSettings))
        except (LakeError, OSError) as error:
            failure = str(error)
        done = Done(failure, ends=read_peak_mib() > MAX_MIB)
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()
        if done.ends:
            break
    return 0


if __name__ == "__main__":
    main()

"""Maintenance of a growing lake: index segments built, small files merged, old days pruned.

Beside a writer it runs in a process of its own, ``python -m tonlake.lake.maintenance.schedule
LAKE``, which ends with its work or after a minute: merging takes the memory of many rows, and no
allocator returns all of it, so a long-running writer would keep the size of its largest merge.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from tonlake.lake.errors import LakeError
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.reader import LogReader
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.own import refresh_tables
from tonlake.lake.maintenance.prune import prune_old_days
from tonlake.lake.process.child import run_child
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_FAILED = 1
LASTS_S = 60.0
"""To start a process costs more than maintenance after sixteen commits: each does more of it."""

NICENESS = 10
"""Lower priority than a follower, whose delay users notice."""


def maintain_once(lake_dir: Path, settings: LakeSettings) -> int:
    """Build index segments, merge small files, prune old days as settings allow; count the commits.

    Files of blocks without an index are not merged, so that these stay cheap to read.

    Raises:
        LakeError: the lake is damaged or full; what was done before stays.
    """
    made = int(settings.build_index and rebuild_index(lake_dir) is not None)
    made += compact_lake(lake_dir, settings, depth="tail").commits
    return made + (prune_old_days(lake_dir, settings) is not None)


class Maintenance:
    """Maintains a lake in a process beside one that commits, which never waits for it."""

    def __init__(
        self, lake_dir: Path, settings: LakeSettings, on_failure: Callable[[str], None]
    ) -> None:
        """Begin with work that is due; ``on_failure`` takes failures; the work is tried again.

        The first commit is followed by maintenance: counted from zero commits, a lake whose writer
        is killed often would never be maintained.
        """
        self._lake_dir = lake_dir
        self._settings = settings
        self._on_failure = on_failure
        self._commits = settings.maintenance_commits
        self._thread: threading.Thread | None = None

    def count(self, commits: int) -> None:
        """Take note of new commits, and start work when it is due and none is under way."""
        self._commits += commits
        due_after = self._settings.maintenance_commits
        busy = self._thread is not None and self._thread.is_alive()
        if due_after == 0 or self._commits < due_after or busy:
            return
        self._commits = 0
        # A daemon, as a commit is complete or absent wherever the process ends.
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the work that is under way is done."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            self._run_process()
        except OSError as error:
            self._on_failure(str(error))
        else:
            self._commits = 0  # It went on until few were left.

    def _run_process(self) -> None:
        """Run the process to its end; its standard input, held open, ends with this process."""
        command = [
            sys.executable,
            "-P",
            "-m",
            "tonlake.lake.maintenance.schedule",
            str(self._lake_dir),
        ]
        with subprocess.Popen(  # noqa: S603 - ours
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise OSError("no pipe to the process that maintains the lake")
            with suppress(BrokenPipeError):  # its exit is reported below
                process.stdin.write(msgspec.json.encode(self._settings) + b"\n")
                process.stdin.flush()
            failure = process.stdout.read().decode("utf-8", "replace")
        if process.returncode:
            raise OSError(failure or f"its process ended with code {process.returncode}")


def main() -> NoReturn:
    """Run the process: it reads settings as a line of JSON, and writes a failure as text."""
    lake_dir = Path(sys.argv[1])
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=LakeSettings)
    os.nice(NICENESS)
    run_child(lambda: _maintain(lake_dir, settings))


def _maintain(lake_dir: Path, settings: LakeSettings) -> int:
    try:
        maintain_lake(lake_dir, settings)
        failed = {
            name: state.error
            for name, state in refresh_tables(lake_dir, settings).items()
            if state.error
        }
    except (LakeError, OSError) as error:
        sys.stdout.write(str(error))
        return EXIT_FAILED
    sys.stdout.write("; ".join(f"table {name}: {error}" for name, error in failed.items()))
    return EXIT_FAILED if failed else 0


def maintain_lake(lake_dir: Path, settings: LakeSettings) -> None:
    """Maintain a lake until few commits came meanwhile, or for as long as a process lasts.

    Raises:
        LakeError: as ``maintain_once``.
    """
    log, until_s = LogReader(lake_dir), time.monotonic() + LASTS_S
    commits = settings.maintenance_commits
    while commits >= settings.maintenance_commits and time.monotonic() < until_s:
        before = log.find().number
        made = maintain_once(lake_dir, settings)
        commits = log.find().number - before - made


if __name__ == "__main__":
    main()

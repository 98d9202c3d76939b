"""Keeps user-defined tables up to date after every commit, in a separate process.

The process is ``python -m tonlake.lake.maintenance.refresher LAKE``: a user's statements take
memory and time that the follower needs. The process rests after each refresh, so that expensive
tables take a fifth of a core and not all of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from tonlake.lake.errors import LakeError
from tonlake.lake.log.own import DEFINITIONS_FILE
from tonlake.lake.log.reader import LogReader
from tonlake.lake.maintenance.own import refresh_tables
from tonlake.lake.process import run_child
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_S = 0.2
"""How often the process checks for a new commit or definition."""

RESTS = 4
"""Seconds of rest for every second of a refresh."""

LASTS_S = 3_600.0
"""The process is replaced after this time, to free the memory of its statements."""

PAUSE_S = 5.0
"""Pause before the process is restarted; doubled after every further failure."""

LONGEST_PAUSE_S = 640.0
"""Upper limit of that pause, for a statement that crashes the process every time."""

END_S = 5.0
"""Time to end before the process is killed; its files are complete or absent."""

NICENESS = 10
"""Lower priority than a follower, whose delay users notice."""


class Refresher:
    """Keeps the process running while the lake has user-defined tables."""

    def __init__(
        self, lake_dir: Path, settings: LakeSettings, on_failure: Callable[[str], None]
    ) -> None:
        """Start nothing yet; ``on_failure`` is called with each failure that differs from the last.

        A process that keeps ending with the same exit code is also reported once.
        """
        self._lake_dir = lake_dir
        self._settings = settings
        self._on_failure = on_failure
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._next_s = 0.0
        self._pause_s, self._exit_code = PAUSE_S, 0

    @property
    def process_id(self) -> int:
        """The id of the process; 0 if there is none."""
        return 0 if self._process is None else self._process.pid

    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def wake(self) -> None:
        """Start the process if it is not running and there is work for it."""
        if self._process is not None and self._process.poll() is not None:
            self._note_end(self._process.returncode)
            self._end()
            self._next_s = time.monotonic() + self._pause_s
        if self._process is not None or time.monotonic() < self._next_s:
            return
        if (self._lake_dir / DEFINITIONS_FILE).is_file():
            try:
                self._start()
            except OSError as error:
                self._on_failure(f"user-defined tables are not refreshed: {error}")
                self._next_s = time.monotonic() + PAUSE_S

    def close(self) -> None:
        """End the process; a table being refreshed keeps its previous rows."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:  # DuckDB does not return before its statement ends
            self._process.kill()
        self._end()

    def _note_end(self, code: int) -> None:
        """Report an exit code that differs from the last; lengthen the pause after failures."""
        if code and code != self._exit_code:
            self._on_failure(f"the refresher of user-defined tables ended with code {code}")
        is_again = bool(code and self._exit_code)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if is_again else PAUSE_S
        self._exit_code = code

    def _start(self) -> None:
        module = "tonlake.lake.maintenance.refresher"
        command = [sys.executable, "-P", "-m", module, str(self._lake_dir)]
        # Its standard input is a pipe that closes when this process ends.
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None  # noqa: S101 - a pipe was requested above
        self._process.stdin.write(msgspec.json.encode(self._settings) + b"\n")
        self._process.stdin.flush()
        self._reader = threading.Thread(target=self._report, name="own tables", daemon=True)
        self._reader.start()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.wait()
        if self._reader is not None:
            self._reader.join()
        process.stdin.close()
        process.stdout.close()

    def _report(self) -> None:
        process = self._process
        assert process is not None  # noqa: S101 - started before this thread
        assert process.stdout is not None  # noqa: S101 - a pipe was requested
        for line in process.stdout:
            self._on_failure(msgspec.json.decode(line, type=str))


def main() -> NoReturn:
    """Run the process: read settings as a line of JSON, and write failures as such lines."""
    lake_dir = Path(sys.argv[1])
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=LakeSettings)
    os.nice(NICENESS)
    run_child(lambda: _keep_fresh(lake_dir, settings))


def _keep_fresh(lake_dir: Path, settings: LakeSettings) -> int:
    """Refresh after every commit and every change of definitions."""
    log, until_s = LogReader(lake_dir), time.monotonic() + LASTS_S
    seen: tuple[int, int] | None = None
    failures: list[str] = []
    reported: list[str] = []
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        try:
            now = log.find().number, (lake_dir / DEFINITIONS_FILE).stat().st_mtime_ns
            if now != seen:
                found = refresh_tables(lake_dir, settings)
                failures = [
                    f"table {name}: {one.error}" for name, one in found.items() if one.error
                ]
                seen = now
        except (LakeError, OSError) as error:
            failures = [str(error)]
        for text in failures:
            if text not in reported:
                sys.stdout.buffer.write(msgspec.json.encode(text) + b"\n")
        sys.stdout.buffer.flush()
        reported = failures
        time.sleep(max(POLL_S, RESTS * (time.monotonic() - began_s)))
    return 0


if __name__ == "__main__":
    main()

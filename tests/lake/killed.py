"""Runs work in a fork of the test and kills it at a given point, without importing again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

from tonlake.lake.log.disk import VARIABLE

KILLED = "killed"
ROOT = Path(__file__).resolve().parents[2]

POINTS = (
    *("commit.start", "commit.files_renamed", "commit.folders_synced"),
    *("log.created", "log.written", "log.synced", "log.linked", "log.unlinked"),
    "log.folder_synced",
    *(
        f"{file}.{step}"
        for file in ("file", "checkpoint", "delta", "segment", "merge")
        for step in ("created", "written", "synced", "renamed")
    ),
    *("compact.renamed", "compact.folders_synced", "prune.written", "prune.indexed"),
    *("sweep.removed", "sweep.shortened", "pull.staged", "pull.copied", "pull.synced"),
    *("pull.adopted", "pull.filled"),
)
"""Every point of the lake, as ``reach`` names them."""


def run_killed(work: Callable[[], object], point: str) -> bool:
    """Run work in a child that is killed at a point; return False if it never got there."""
    return run_child(work, point, 0) == KILLED


def run_child(work: Callable[[], object], crash_at: str, delay_ms: float) -> str:
    """Run work in a child; kill it at a point (``-``: none) or after a delay (0: never)."""
    child = os.fork()
    if child == 0:
        if crash_at != "-":
            os.environ[VARIABLE] = crash_at
        work()
        os._exit(0)
    if delay_ms:
        time.sleep(delay_ms / 1000)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return KILLED if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"
    return "ended" if os.WEXITSTATUS(status) == 0 else f"failed {os.WEXITSTATUS(status)}"


def serve_orders(work: Callable[[Path], object]) -> None:
    """Run work on lakes until stdin ends, one line ``LAKE CRASH_AT DELAY_MS`` per child."""
    with mock.patch("os.fsync"):  # which a killed process does not need
        for line in sys.stdin:
            lake, crash_at, delay_ms = line.split()
            print(run_child(partial(work, Path(lake)), crash_at, float(delay_ms)), flush=True)  # noqa: T201


class Victim:
    """A process of a module that serves orders, so that imports are paid once for many kills."""

    def __init__(self, module: str, *options: object) -> None:
        """Start it."""
        command = [sys.executable, "-m", module, *map(str, options)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def order(self, lake: Path, crash_at: str = "-", delay_ms: float = 0) -> str:
        """Run the work until it ends or is killed, and return which."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{lake} {crash_at} {delay_ms}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()

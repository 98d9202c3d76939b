"""Runs the service as users do, beside a simulated node; it can be killed and restarted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.ingest.simulator.fault import Clock

SERVE = "from tonlake.api.command.start import start; start()"
FOLLOWER, MAINTENANCE = "ingest.run.tail", "lake.maintenance.schedule"


class Service:
    """``tonlake serve --node DIR --lake DIR --follow`` on a port of its own."""

    def __init__(self, db_dir: Path, lake: Path, clock: Clock, settings: Mapping[str, str]) -> None:
        """Take the folders, the clock, and the settings."""
        with closing(socket.create_server(("127.0.0.1", 0))) as listener:
            self.port: int = listener.getsockname()[1]
        command = [sys.executable, "-c", SERVE, "serve", "--port", str(self.port), "--follow"]
        command += ["--node", str(db_dir), "--lake", str(lake)]
        self._command = clock.wrap(command)
        self._environment = os.environ | settings
        self._log = (lake.parent / "service.log").open("ab")
        self.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def follower(self) -> int | None:
        """Id of its follower process, if one is running."""
        return find_child(self.pid, FOLLOWER)

    @property
    def maintenance(self) -> int | None:
        """Id of the follower's maintenance process, if one is running."""
        follower = self.follower
        return None if follower is None else find_child(follower, MAINTENANCE)

    def start(self) -> None:
        """Start it; return at once."""
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=self._log, stderr=self._log
        )

    def kill(self) -> None:
        """Kill and restart it."""
        self._process.kill()
        self._process.wait()
        self.start()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._log.close()


def find_child(pid: int, command: str) -> int | None:
    """Return the child process whose command line contains ``command``."""
    for process in psutil.process_iter(["ppid", "cmdline"]):
        found = process.info
        if found["ppid"] == pid and command in " ".join(found["cmdline"] or ()):
            return int(process.pid)
    return None


def list_family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; none if it has ended."""
    with suppress(psutil.NoSuchProcess):
        main = psutil.Process(pid)
        return [main, *main.children(recursive=True)]
    return []


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that waits for its parent does not."""
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False

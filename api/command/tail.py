"""Runs a child process of the server, such as a follower, and restarts it when it exits."""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = logging.getLogger("tonlake.follow")
FIRST_PAUSE_S = 0.5
STEADY_S = 60.0
"""A process that ran for this long started well: the next restart pause is short again."""

END_S = 10.0
"""Grace period before the process is killed, which is safe, as commits are atomic."""


class Tail:
    """Keeps one process running; its exit is logged and does not affect the server."""

    def __init__(
        self, command: Sequence[str], *, max_pause_s: float, name: str = "follower"
    ) -> None:
        """Take the command, the maximum pause before a restart, and the name for logs."""
        self._command = tuple(command)
        self._max_pause_s = max_pause_s
        self._name = name
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)

    @property
    def pid(self) -> int | None:
        """Process id; None while it is not running."""
        with self._lock:
            return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Terminate the process and wait for it."""
        with self._lock:
            self._is_over.set()
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()

    def _keep(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._is_over.is_set():
            began_s = time.monotonic()
            code = self._run_once()
            if code is None:
                return
            if time.monotonic() - began_s > STEADY_S:
                pause_s = FIRST_PAUSE_S
            LOG.warning("the %s exited with code %s: restart in %.1f s", self._name, code, pause_s)
            self._is_over.wait(pause_s)
            pause_s = min(self._max_pause_s, pause_s * 2)

    def _run_once(self) -> int | None:
        """Run the process until it exits; return its exit code, or None after ``stop``."""
        with self._lock:
            if self._is_over.is_set():
                return None
            # Its stdin closes when this process ends, however that happens. The new session keeps
            # Ctrl-C away from it, as this process ends it in its own way.
            self._process = subprocess.Popen(  # noqa: S603 - ours
                self._command, stdin=subprocess.PIPE, start_new_session=True
            )
        with self._process as process:
            code = process.wait()
        with self._lock:
            self._process = None
            return None if self._is_over.is_set() else code

"""Runs a child process of a server.

It ends on SIGTERM, or when its parent, which holds the other end of its standard input, is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


def run_child(work: Callable[[], int]) -> NoReturn:
    """Run ``work`` until it returns or SIGTERM arrives, and exit with its return code."""
    signal.signal(signal.SIGTERM, _end_orderly)
    # Ctrl-C may reach the whole process group; the parent sends SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, name="parent", daemon=True).start()
    try:
        code = work()
    except SystemExit as end:
        code = int(end.code or 0)
    # Exit without waiting: library finalizers would interfere with each other, and threads may
    # be waiting for slow hosts. A commit is complete or absent.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_orderly(_number: int, _frame: object) -> None:
    """Exit cleanly; a running commit is complete or absent."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _watch_parent() -> None:
    """End this process once its parent is gone, or closes its standard input."""
    closed = select.poll()
    closed.register(sys.stdin.fileno(), 0)  # hang-up only: other code reads the input
    closed.poll()
    os.kill(os.getpid(), signal.SIGTERM)

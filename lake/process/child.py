"""The life of a process that a server starts and that works beside it.

It ends on SIGTERM, and when its parent is gone, which holds the other end of its standard input.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from tonlake.lake.process.memory import hold_little, without_pandas

if TYPE_CHECKING:
    from collections.abc import Callable


def run_child(work: Callable[[], int]) -> NoReturn:
    """Work until SIGTERM, or to the end, and exit with the code that it returns."""
    hold_little()
    signal.signal(signal.SIGTERM, _end_orderly)
    # Ctrl-C may reach a process group: the parent sends SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, name="parent", daemon=True).start()
    try:
        with without_pandas():
            code = work()
    except SystemExit as end:
        code = int(end.code or 0)
    # Nothing is waited for: what is left are libraries whose own ends would complain of each
    # other, and threads that ask slow hosts. A commit is complete or absent.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_orderly(_number: int, _frame: object) -> None:
    """End in order; a commit under way is complete or absent."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


def _watch_parent() -> None:
    """End this process once its parent is gone, or closes its standard input."""
    closed = select.poll()
    closed.register(sys.stdin.fileno(), 0)  # What is written there is for others to read.
    closed.poll()
    os.kill(os.getpid(), signal.SIGTERM)

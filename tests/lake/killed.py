"""Work that is killed at a point, in a fork of the test: nothing is imported anew."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from lake.crash import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable


def run_killed(work: Callable[[], object], point: str) -> bool:
    """Do work in a child that is killed at a point; False if it never got there."""
    child = os.fork()
    if child == 0:
        os.environ[VARIABLE] = point
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL

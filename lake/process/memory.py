"""Memory of processes: one allocator, and the peak of what it holds."""

from __future__ import annotations

import os
from pathlib import Path


def share_with_arrow() -> None:
    """Make Arrow use malloc, like all other code here; call this before Arrow is loaded.

    By default Arrow has its own allocator, which keeps tens of megabytes of free memory.
    ``pa.set_memory_pool`` comes too late: it does not affect Parquet readers. Child processes
    inherit this; a value set before is kept.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def read_peak_mib() -> float:
    """Return the peak memory of this process in MiB (``VmHWM`` of proc(5))."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024

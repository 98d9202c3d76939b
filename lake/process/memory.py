"""Memory of long-running processes: fewer allocator arenas, and no pandas."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType


_M_ARENA_MAX = -8
"""The option's number in glibc's ``malloc.h``."""

_ARENAS = 2


def share_with_arrow() -> None:
    """Make Arrow use malloc, like all other code here; call this before Arrow is loaded.

    By default Arrow has its own allocator, which keeps tens of megabytes of free memory.
    ``pa.set_memory_pool`` comes too late: it does not affect Parquet readers. Child processes
    inherit this; a value set before is kept.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def hold_little(every_s: float = 10.0) -> bool:
    """Return free memory to the system from now on; return False if the C library is not glibc.

    By default glibc's allocator creates an arena per thread, up to eight per core, and none
    returns free memory: a server with thirty threads wasted a third of its memory this way. Here
    all threads share two arenas (``mallopt(3)``), and free pages are returned every ``every_s``
    seconds (``malloc_trim(3)``). With another C library nothing changes.
    """
    library = ctypes.CDLL(None)
    set_option, trim = getattr(library, "mallopt", None), getattr(library, "malloc_trim", None)
    if set_option is None or trim is None or set_option(_M_ARENA_MAX, _ARENAS) != 1:
        return False

    def give_back() -> None:
        while True:
            time.sleep(every_s)
            trim(0)  # the call releases the GIL

    threading.Thread(target=give_back, name="memory", daemon=True).start()
    return True


def read_peak_mib() -> float:
    """Return the peak memory of this process in MiB (``VmHWM`` of proc(5))."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


_NAME = "pandas"


@contextmanager
def without_pandas() -> Iterator[None]:
    """Hide pandas, as if it were not installed, while the block runs, unless it is loaded.

    Arrow imports pandas as soon as it converts a Python list or number, to check for pandas types:
    0.7 s of CPU and 40 MiB in every process, and a process that maintains a lake starts every few
    seconds. tonlake uses no pandas objects.
    """
    finder = _Hiding()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Hiding(MetaPathFinder, Loader):
    """Finds pandas before other finders do, and cannot load it.

    ``importlib.util.find_spec`` must work, so the error is raised only on loading.
    """

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == _NAME else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise ModuleNotFoundError(f"{spec.name} is left out here", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never called; a loader without it counts as a legacy one."""

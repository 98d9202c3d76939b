"""Memory of long-running processes: fewer allocator arenas, and pandas left unloaded."""

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
    """Let Arrow take its memory from the C library, as all else here does; before it is loaded.

    By default it takes it from an allocator of its own, which keeps tens of megabytes that are
    free. ``pa.set_memory_pool`` comes too late: it does not reach what reads Parquet. Child
    processes do likewise; a value set before stays.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def hold_little(every_s: float = 10.0) -> bool:
    """Hold little more memory than is used from now on; return whether that is possible.

    By default glibc's allocator begins an arena for each thread, up to eight a core, and none
    returns what it has free: a server with thirty threads kept a third of its memory so. Here all
    threads share two (``mallopt(3)``), and every ``every_s`` seconds free pages are returned
    (``malloc_trim(3)``). With another C library nothing is changed.
    """
    library = ctypes.CDLL(None)
    set_option, trim = getattr(library, "mallopt", None), getattr(library, "malloc_trim", None)
    if set_option is None or trim is None or set_option(_M_ARENA_MAX, _ARENAS) != 1:
        return False

    def give_back() -> None:
        while True:
            time.sleep(every_s)
            trim(0)  # The call lets other threads run Python meanwhile.

    threading.Thread(target=give_back, name="memory", daemon=True).start()
    return True


def read_peak_mib() -> float:
    """Return the most memory that this process has held so far (``VmHWM`` of proc(5))."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


_NAME = "pandas"


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let pandas look as if it were not installed while the block runs, unless it is loaded.

    Arrow loads it as soon as it takes a Python list or number, in case that is one of pandas':
    0.7 s of CPU and 40 MiB in every process, and one that keeps a lake up is begun every few
    seconds. Nothing of tonlake takes or gives what is pandas'.
    """
    finder = _Hiding()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Hiding(MetaPathFinder, Loader):
    """Finds pandas before others do, and cannot load it.

    ``importlib.util.find_spec`` must work, so the error is raised on loading only.
    """

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == _NAME else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise ModuleNotFoundError(f"{spec.name} is left out here", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never reached; a loader without it is taken for one of an older kind."""

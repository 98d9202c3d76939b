"""Where memory comes from and goes back to, in processes that run for weeks with many threads."""

from __future__ import annotations

import ctypes
import os
import threading
import time

_M_ARENA_MAX = -8
"""The option's number in glibc's ``malloc.h``."""

_ARENAS = 2


def share_with_arrow() -> None:
    """Let Arrow take its memory from the C library, as all else here does; before it is loaded.

    By default it takes it from an allocator of its own, which keeps tens of megabytes that are
    free. ``pa.set_memory_pool`` comes too late: it does not reach what reads Parquet. Processes
    that this one starts do likewise; whoever set the variable has decided.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def hold_little(every_s: float = 10.0) -> bool:
    """Let this process hold little more memory than it uses from now on; tell whether it can.

    By default glibc's allocator begins an arena for each thread, up to eight a core, none of which
    lends what it has free or gives it back: a server with thirty threads kept a third of its memory
    so. All threads share two of them here (``mallopt(3)``), and every ``every_s`` seconds their
    free pages are given back (``malloc_trim(3)``). With another C library nothing is changed.
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

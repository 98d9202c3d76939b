"""Where the C library takes memory from, in processes that run for weeks with many threads."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""The option's number in glibc's ``malloc.h``."""

_ARENAS = 2


def share_arenas() -> bool:
    """Let all threads share two arenas of the allocator, and tell whether that could be set.

    By default each of them gets one of its own, up to eight a core, none of which ever lends what
    it has free: a server with thirty threads kept a third of its memory so. Only glibc has the
    option (``mallopt(3)``), and it holds for arenas that are not begun yet.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and set_option(_M_ARENA_MAX, _ARENAS) == 1

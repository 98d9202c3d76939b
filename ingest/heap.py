"""Memory of a process that ingests: what is freed is kept, because the next chunk wants it again.

Every chunk of blocks and every commit takes about as much memory as the one before. By default
large buffers go back to the kernel and come again as fresh pages, each of which the kernel has to
find and clear: a third of the CPU time of ingest, measured.
"""

from __future__ import annotations

import ctypes
from functools import cache

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt, from malloc.h of glibc."""

_KEPT_BYTES = 1 << 30
"""Buffers up to this size come from the heap, and so much may lie free at its end."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory that it frees; False where the C library cannot be told.

    Arrow's memory then comes from the same heap as the decoder's, so that one can have what the
    other let go of. The most that is held is what was needed at once.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    done = bool(mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES))
    done &= bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
    pa.set_memory_pool(pa.system_memory_pool())
    return done

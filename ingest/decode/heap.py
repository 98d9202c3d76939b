"""Tunes the memory of an ingesting process: freed memory is kept for the next chunk.

Every chunk of blocks and every commit needs about as much memory as the previous one. By default
large buffers go back to the kernel and return as new pages, which the kernel has to clear: a third
of the CPU time of ingest, measured. Python's cyclic garbage collector visits all rows of a chunk
again and again: a tenth of the time of the Python decoder.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt (glibc, malloc.h)."""

_KEPT_BYTES = 1 << 30
"""Buffers up to this size come from the heap; as much may stay free at its end."""


@cache
def keep_freed_memory() -> bool:
    """Make this process keep the memory that it frees; return False if libc is not glibc.

    Arrow then shares the decoder's heap, which never exceeds its peak use.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    done = bool(mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES))
    done &= bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
    done &= bool(mallopt(_M_ARENA_MAX, 1))  # else each thread keeps its own freed memory
    pa.set_memory_pool(pa.system_memory_pool())
    return done


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the cyclic garbage collector, for work that creates many rows and no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

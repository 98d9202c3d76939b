"""Memory of an ingesting process: freed memory is kept, because the next chunk needs it.

Every chunk of blocks and every commit takes about as much memory as the one before. By default
large buffers go back to the kernel and come again as fresh pages, which the kernel has to
clear: a third of the CPU time of ingest, measured. Python's search for cyclic garbage
goes over all rows of a chunk again and again: a tenth of the time of the Python decoder.
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
"""Parameters of mallopt, from malloc.h of glibc."""

_KEPT_BYTES = 1 << 30
"""Buffers up to this size come from the heap, and so much may lie free at its end."""


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory that it frees; False where the C library is not glibc.

    Arrow then shares the decoder's heap. The most that is held is what was needed at once.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return False
    done = bool(mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES))
    done &= bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
    done &= bool(mallopt(_M_ARENA_MAX, 1))  # else each thread keeps what it freed for itself
    pa.set_memory_pool(pa.system_memory_pool())
    return done


@contextmanager
def without_collector() -> Iterator[None]:
    """Search for no cyclic garbage meanwhile: for work that makes many rows and no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

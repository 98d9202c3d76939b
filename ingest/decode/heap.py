"""Tunes the memory of an ingesting process.

Python's cyclic garbage collector visits all rows of a chunk again and again: a tenth of the time of
the Python decoder.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


def give_arrow_its_heap() -> None:
    """Make Arrow allocate by mimalloc, which keeps what it frees for the next chunk of blocks.

    Commands share malloc with Arrow otherwise, which returns large buffers to the kernel and has
    them cleared when they come again.
    """
    pa.set_memory_pool(pa.mimalloc_memory_pool())


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

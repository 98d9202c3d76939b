"""Memory that a process keeps, set once in a separate process."""

import gc
import subprocess
import sys

import pytest

from tonlake.ingest.decode.heap import without_collector

KEPT = """
import pyarrow as pa
from tonlake.ingest.decode.heap import keep_freed_memory

def resident_pages():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1])

told = keep_freed_memory()
assert not told or pa.default_memory_pool().backend_name == "system"
size = 64 << 20
buffer = pa.allocate_buffer(size)
memoryview(buffer).cast("B")[::4096] = bytes(size // 4096)
full = resident_pages()
del buffer
assert not told or full - resident_pages() < size // 4096 // 2, "the pages went back"
"""


def test_freed_memory_is_kept() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", KEPT], check=True)


def test_the_collector_works_again_afterwards() -> None:
    with without_collector():
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled(), "whoever began it ends it"
    assert gc.isenabled()


def test_the_collector_works_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), without_collector():
        int("bad")
    assert gc.isenabled()

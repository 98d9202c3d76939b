"""Memory arenas are shared by threads, and memory is returned to the system."""

import subprocess
import sys

import pytest

_ALLOCATE = """
import ctypes, sys, threading
from tonlake.lake.process.memory import hold_little

if sys.argv[1] == "shared" and not hold_little():
    sys.exit(3)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(9)

def allocate() -> None:
    libc.malloc(1000)
    together.wait()
    together.wait()

for _ in range(8):
    threading.Thread(target=allocate).start()
together.wait()
libc.malloc_stats()
together.wait()
"""


def count_arenas(how: str) -> int:
    command = [sys.executable, "-c", _ALLOCATE, how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("the C library has no such option")
    assert done.returncode == 0, done.stderr
    return done.stderr.count("Arena ")


def test_threads_share_two_arenas() -> None:
    assert count_arenas("shared") == 2
    assert count_arenas("each its own") > 2


_FREE = """
import ctypes, os, sys, time
from pathlib import Path
from tonlake.lake.process.memory import hold_little

def read_mib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

if not hold_little(0.01):
    sys.exit(3)
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
before = read_mib()
blocks = [libc.malloc(1000) for _ in range(50_000)]
for block in blocks:
    ctypes.memset(block, 1, 1000)
above = libc.malloc(1000)  # So that the heap's end cannot fall.
assert read_mib() - before > 40
for block in blocks:
    libc.free(block)
del blocks
until_s = time.monotonic() + 60
while read_mib() - before > 20:
    assert time.monotonic() < until_s
    time.sleep(0.01)
"""


def test_what_is_free_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FREE], capture_output=True, text=True, check=False
    )
    if done.returncode == 3:
        pytest.skip("the C library has no such option")
    assert done.returncode == 0, done.stderr

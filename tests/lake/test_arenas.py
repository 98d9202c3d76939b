"""Threads that share arenas of the allocator."""

from __future__ import annotations

import subprocess
import sys

import pytest

_ALLOCATE = """
import ctypes, sys, threading
from lake.arenas import share_arenas

if sys.argv[1] == "shared" and not share_arenas():
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

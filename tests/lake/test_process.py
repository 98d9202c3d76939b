"""Processes: the limit of open files, and the end of a child."""

import subprocess
import sys

import pytest

_FILES = """
import resource
from tonlake.lake.process import raise_file_limit

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
"""
_SIGNAL_IN_FINALIZER = """
import os, signal
from tonlake.lake.process import run_child

Dropped = type("Dropped", (), {"__del__": lambda _self: os.kill(os.getpid(), signal.SIGTERM)})
run_child(lambda: 7 if Dropped() else 8)
"""


@pytest.mark.parametrize("script", [_FILES, _SIGNAL_IN_FINALIZER])
def test_a_process_of_its_own(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True, stdin=subprocess.DEVNULL)

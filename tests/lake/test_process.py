"""Processes: the limit of open files, and the end of a child."""

import subprocess
import sys

_RAISED = """
import resource
from tonlake.lake.process import raise_file_limit

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
"""


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    subprocess.run([sys.executable, "-c", _RAISED], check=True)


_ENDED = """
import os, signal
from tonlake.lake.process import run_child

Dropped = type("Dropped", (), {"__del__": lambda _self: os.kill(os.getpid(), signal.SIGTERM)})
run_child(lambda: 7 if Dropped() else 8)
"""


def test_a_signal_during_a_finalizer_ends_a_child() -> None:
    ended = subprocess.run([sys.executable, "-c", _ENDED], check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0

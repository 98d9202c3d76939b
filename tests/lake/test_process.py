"""Limits of a process, in a separate one: open files, and arenas of the C library."""

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


_SHARED = """
import threading
from tonlake.lake.system import limit_arenas

limit_arenas()
met = threading.Barrier(9)
for _ in range(8):
    threading.Thread(target=lambda: (bytes(9_000), met.wait())).start()
met.wait()
starts = [int(line.partition("-")[0], 16) for line in open("/proc/self/maps")]
assert sum(start % (1 << 26) == 0 for start in starts) < 4, starts  # an arena begins at 64 MiB
"""


def test_threads_share_arenas() -> None:
    subprocess.run([sys.executable, "-c", _SHARED], check=True)

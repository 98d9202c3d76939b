"""The limit of open files, in a separate process: a lowered one can be raised again."""

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

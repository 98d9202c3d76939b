"""How many files a process may have open."""

from __future__ import annotations

import resource


def raise_file_limit() -> None:
    """Let this process, and those that it starts, open as many files as the system allows."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

"""Raises the limit of open files."""

from __future__ import annotations

import resource


def raise_file_limit() -> None:
    """Let this process and its children open as many files as the system allows."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

"""Leases: readers mark the snapshot they use, and sweeps leave its files and its log entry alone.

A lease on commit N is a shared lock on byte N of ``_log/leases``. The system releases it however
the reader ends, nothing is written, and a reader needs no right to write. Without the file, as on
media that cannot be written, readers have no leases, only the grace period; where the system has no
such locks, the longer one.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from tonlake.lake.log.state import LOG_FOLDER
from tonlake.lake.system import find_shared, share_byte

LEASE_FILE = f"{LOG_FOLDER}/leases"


class Lease:
    """Keeps the files of a snapshot until it is closed or forgotten."""

    def __init__(self, lake_dir: Path, number: int) -> None:
        """Take the lease on commit ``number``; none if the lake's folder does not allow it."""
        self._descriptor: int | None = None
        with suppress(OSError):
            self._descriptor = _open_file(lake_dir)
            share_byte(self._descriptor, number)

    def close(self) -> None:
        """Give the lease back."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Return ``self``."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lease back."""
        self.close()

    def __del__(self) -> None:
        """Give the lease back with its snapshot."""
        self.close()


def _open_file(lake_dir: Path) -> int:
    path = lake_dir / LEASE_FILE
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def list_leased(lake_dir: Path, newest: int) -> list[int]:
    """Return the numbers of the commits before ``newest`` with a lease, ascending."""
    try:
        descriptor = os.open(lake_dir / LEASE_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        return []
    leased: list[int] = []
    unknown = [(1, newest)] if newest > 1 else []
    try:
        while unknown:
            first, end = unknown.pop()
            at = find_shared(descriptor, first, end)
            if at is not None:
                leased.append(at)
                unknown += [part for part in ((first, at), (at + 1, end)) if part[0] < part[1]]
    finally:
        os.close(descriptor)
    return sorted(leased)

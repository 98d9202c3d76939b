"""Creates private folders through which stores are opened, so that the node's stay untouched.

All of them are in one folder of the system's temporary directory, which is locked as long as its
process lives. The folders of killed processes are removed by the next process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "tonlake-node-"


class Scratch:
    """Creates private folders, and removes all of them in the end."""

    def __init__(self) -> None:
        """Remove the folders of dead processes, and create the one of this process."""
        root = Path(tempfile.gettempdir())
        for left_over in root.glob(f"{PREFIX}*"):
            _remove_if_dead(left_over)
        self.folder = root
        self._lock = -1
        while self._lock < 0:
            self.folder, self._lock = _make_locked_folder(root)

    def new_folder(self) -> Path:
        """Create an empty folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def close(self) -> None:
        """Remove all folders."""
        if self._lock >= 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _make_locked_folder(root: Path) -> tuple[Path, int]:
    """Return a new folder and the file descriptor that locks it.

    The descriptor is -1 if another process removed the folder before it was locked.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    try:
        lock = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return folder, -1
    fcntl.flock(lock, fcntl.LOCK_EX)
    if folder.exists():
        return folder, lock
    os.close(lock)
    return folder, -1


def _remove_if_dead(folder: Path) -> None:
    """Remove ``folder`` unless a running process has locked it or it belongs to another user."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(lock)

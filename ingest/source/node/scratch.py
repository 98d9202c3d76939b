"""Private folders through which stores are opened, so that nothing is written beside a node.

All live in one folder of the system's temporary space. It is locked while its process lives;
what a killed process left behind is removed by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "tonlake-node-"


class Scratch:
    """Gives private folders and removes them all at the end."""

    def __init__(self) -> None:
        """Remove what dead processes left, and make this process's own folder."""
        root = Path(tempfile.gettempdir())
        for left_over in root.glob(f"{PREFIX}*"):
            _remove_if_dead(left_over)
        self.folder = root
        self._lock = -1
        while self._lock < 0:
            self.folder, self._lock = _make_locked_folder(root)

    def new_folder(self) -> Path:
        """Make an empty folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def close(self) -> None:
        """Remove all folders."""
        if self._lock >= 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _make_locked_folder(root: Path) -> tuple[Path, int]:
    """Return a folder and the descriptor that locks it.

    The descriptor is -1 if another process took the folder, not locked yet, for a left-over.
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
    """Remove the folder unless a living process has locked it, or it is another user's."""
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

"""Private folders through which stores are opened, so that nothing is written beside a node.

All live in one folder of the system's temporary space. It is locked while its process lives;
what a killed process left behind is removed by the next one.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path

PREFIX = "tonlake-node-"
NEW_PREFIX = "tonlake-new-"
"""Of a folder whose lock is not held yet: the next process must not take it for a dead one's."""

LOCK_NAME = "lock"


class Scratch:
    """Gives private folders and removes them all at the end."""

    def __init__(self) -> None:
        """Remove what dead processes left, and make this process's own folder."""
        root = Path(tempfile.gettempdir())
        for left_over in root.glob(f"{PREFIX}*"):
            _remove_if_dead(left_over)
        made = Path(tempfile.mkdtemp(prefix=NEW_PREFIX, dir=root))
        self._lock = (made / LOCK_NAME).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.folder = made.rename(root / made.name.replace(NEW_PREFIX, PREFIX))

    def new_folder(self) -> Path:
        """Make an empty folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def close(self) -> None:
        """Remove every folder that was given."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def _remove_if_dead(folder: Path) -> None:
    """Remove the folder unless a living process holds its lock, or it is another user's."""
    try:
        with (folder / LOCK_NAME).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return

"""What a lake needs from time to time as it grows: look-ups made, small files merged."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from lake.compact import compact_lake
from lake.errors import LakeError
from lake.lookup.rebuild import rebuild_lookups

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lake.settings import Settings


def keep_up(lake_dir: Path, settings: Settings) -> None:
    """Make the look-ups that are missing and merge what is small, as far as settings want it.

    Look-ups come first: files of blocks that have none are left as they are, so that these
    blocks stay cheap to look up in memory.

    Raises:
        LakeError: the lake is damaged or full; what was done before stays.
    """
    if settings.build_lookups:
        rebuild_lookups(lake_dir, settings)
    compact_lake(lake_dir, settings, depth="tail")


class Upkeep:
    """Keeps a lake up in a thread beside one that commits, which never waits for it."""

    def __init__(
        self, lake_dir: Path, settings: Settings, on_failure: Callable[[str], None]
    ) -> None:
        """Begin with work that is due; ``on_failure`` is told of failures, and it is tried again.

        What was left by one that was killed is made up for at the first commit: counted from
        nothing, a lake whose writer is killed often would never be kept up.
        """
        self._lake_dir = lake_dir
        self._settings = settings
        self._on_failure = on_failure
        self._commits = settings.upkeep_commits
        self._thread: threading.Thread | None = None

    def count(self, commits: int) -> None:
        """Take note of new commits, and start work when it is due and none is under way."""
        self._commits += commits
        wanted = self._settings.upkeep_commits
        busy = self._thread is not None and self._thread.is_alive()
        if wanted == 0 or self._commits < wanted or busy:
            return
        self._commits = 0
        # A daemon, as a commit is whole or absent wherever the process ends.
        self._thread = threading.Thread(target=self._work, name="upkeep", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the work that is under way is done."""
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            keep_up(self._lake_dir, self._settings)
        except (LakeError, OSError) as error:
            self._on_failure(str(error))

"""Files of an open snapshot that are written to after their digests were checked.

DuckDB and memory maps read a file as it is now. A write shows in its times of modification and
change, so the status of each file, read after an answer was computed from it, shows whether the
answer may be damaged. Rot below the file system changes no time: for that all files are read
once more, see ``lake.maintenance.recheck``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tonlake.lake.log.digest import find_changed, find_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tonlake.lake.log.state import DataFile

REST = 20
"""A sweep over a group of files is followed by a pause of this many times its duration."""


class FileWatch:
    """Compares files with what was found when their digests were checked, in groups.

    A status takes a microsecond a file. Sweeps take at most 5 % of the time, whatever the number
    of files: with 50,000 files a change is found within a second, with 100 within milliseconds.
    """

    def __init__(
        self,
        lake_dir: Path,
        groups: Mapping[str, Sequence[DataFile]],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take the files by group; all were sound a moment ago. ``clock`` returns seconds."""
        self._lake_dir, self._groups, self._clock = lake_dir, groups, clock
        self._paths: dict[str, list[tuple[str, DataFile]]] = {}
        self._due_s: dict[str, float] = {}
        self.damaged = False
        """Whether a file is damaged: the snapshot has to be opened again."""

    def check(self, group: str, *, always: bool = False) -> None:
        """Compare the files of a group, unless that was done just now and is not asked ``always``.

        Raises:
            LakeCorrupt: a file does not have the bytes that were committed.
        """
        started_s = self._clock()
        if not always and started_s < self._due_s.get(group, 0.0):
            return
        if group not in self._paths:
            root, files = self._lake_dir.absolute(), self._groups.get(group, ())
            self._paths[group] = [(f"{root}/{file.path}", file) for file in files]
        changed = find_changed(self._paths[group])
        if changed:
            damage = find_damage(self._lake_dir, changed)
            if damage:
                self.damaged = True
                raise damage[0]
        ended_s = self._clock()
        self._due_s[group] = ended_s + REST * (ended_s - started_s)

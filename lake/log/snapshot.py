"""What a reader sees: one commit, and the files that are live after it.

A snapshot never changes: files are immutable, and a later commit is another snapshot.
"""

from __future__ import annotations

import time
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET

from tonlake.lake.errors import TableLacking
from tonlake.lake.log.digest import find_changed, find_damage
from tonlake.lake.log.place import read_place
from tonlake.lake.log.ranges import cut_ranges
from tonlake.lake.log.selection import list_lacking
from tonlake.lake.log.state import SEGMENT_FOLDER, read_commit, read_state
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tonlake.lake.errors import LakeCorrupt
    from tonlake.lake.log.network import Network
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.reader import LogReader
    from tonlake.lake.log.state import Baseline, Commit, DataFile, LogState, Undoing

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


class Snapshot:
    """The lake as of one commit; ``damaged`` maps tables that cannot be asked to the reason.

    That is damage, or that the lake is a copy without the table.
    """

    def __init__(self, lake_dir: Path, state: LogState, damage: Iterable[LakeCorrupt] = ()) -> None:
        """Take the state after a commit; ``open_snapshot`` is the way to get one."""
        self.lake_dir = lake_dir
        self.state = state
        self.number: int = state.number
        self.ranges: tuple[Range, ...] = state.ranges
        self.known_ranges: tuple[Range, ...] = state.known_ranges
        """Ranges whose changes the states of accounts have: pruned ones as well."""
        self.network: Network | None = state.network
        self.undoings: tuple[Undoing, ...] = state.undoings
        self.baseline: Baseline | None = None if state.baseline is UNSET else state.baseline
        self.files: dict[str, tuple[DataFile, ...]] = {
            name: state.by_table.get(name, ()) for name in TABLES
        }
        self.damaged: dict[str, LakeCorrupt] = {}
        broken: set[str] = set()
        for error in damage:
            broken.add(error.file)
            if not error.file.startswith(f"{SEGMENT_FOLDER}/"):
                self.damaged.setdefault(error.file.split("/", 1)[0], error)
        # A damaged segment holds nothing that the data files lack.
        self.segments = tuple(segment for segment in state.segments if segment.path not in broken)
        self.watch = FileWatch(lake_dir, {})
        """Checks files by table, and segments as the group ``lookups``; without digests, none."""
        self.bound: int | None = None
        """Last masterchain block whose rows are shown; None for all (``up_to``)."""
        self.checked_until_s = float("-inf")
        """When all files are to be looked at again, should a later snapshot be opened."""

    @property
    def first_mc_seqno(self) -> int:
        """First masterchain block that the snapshot has."""
        return self.ranges[0][0]

    @property
    def last_mc_seqno(self) -> int:
        """Last masterchain block that the snapshot has."""
        return self.ranges[-1][1]

    def has_every_account(self, mc_seqno: int) -> bool:
        """Whether the baseline and the blocks after it show all accounts as of a block.

        Where the baseline was read from a later state than its own, it can be asked from that on.
        """
        baseline = self.baseline
        if baseline is None or baseline.accounts != "all":
            return False
        is_read = baseline.state_mc_seqno <= mc_seqno
        return is_read and any(
            first <= baseline.mc_seqno + 1 <= mc_seqno <= last for first, last in self.known_ranges
        )

    def is_sound_until(self, now_s: float) -> bool:
        """Whether no file was found damaged, and all of them were looked at not long ago."""
        is_sound = all(isinstance(error, TableLacking) for error in self.damaged.values())
        is_sound = is_sound and len(self.segments) == len(self.state.segments)
        return is_sound and not self.watch.damaged and now_s < self.checked_until_s

    @property
    def lacking(self) -> tuple[str, ...]:
        """Tables that the lake was copied without."""
        errors = self.damaged.values()
        return tuple(error.file for error in errors if isinstance(error, TableLacking))

    def up_to(self, mc_seqno: int) -> Snapshot:
        """Return the lake as it was after a masterchain block: views leave later rows out.

        It has no segments, as they are not cut at blocks; SQL answers.
        """
        past = copy(self)
        past.bound = mc_seqno
        past.ranges = cut_ranges(self.ranges, mc_seqno)
        past.known_ranges = cut_ranges(self.known_ranges, mc_seqno)
        past.files = {
            name: tuple(file for file in group if read_place(file.path).first <= mc_seqno)
            for name, group in self.files.items()
        }
        past.segments = ()
        return past

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """Every commit up to this one, read from the log when first asked for."""
        return tuple(read_commit(self.lake_dir, at)[0] for at in range(1, self.number + 1))

    def sound_files(self) -> dict[str, tuple[DataFile, ...]]:
        """Return the files of the tables that can be asked."""
        return {name: files for name, files in self.files.items() if name not in self.damaged}

    def list_new(self, later: LogState) -> list[DataFile]:
        """Return the files and segments of a later state that this snapshot does not have."""
        mine, known = self.state.by_place, set(self.segments)
        groups = ((mine.get(name, ()), group) for name, group in later.by_place.items())
        files = [
            file
            for before, group in groups
            if before is not group
            for file in group
            if file not in before
        ]
        return files + [segment for segment in later.segments if segment not in known]


def open_snapshot(
    lake_dir: Path,
    number: int | None = None,
    *,
    check_digests: bool = True,
    log: LogReader | None = None,
    earlier: Snapshot | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Snapshot:
    """Open the lake as of commit ``number``, the newest by default; ``log`` is a reader of its log.

    With ``check_digests`` every file that this process has not checked yet is read and compared
    with its digest. Damage of a data file does not stop the other tables from being asked.
    To see whether files that were checked have changed since takes a few microseconds each. It is
    left out for files of a sound ``earlier`` snapshot while it would take more than 5 % of the
    time; ``clock`` returns seconds.

    Raises:
        LakeNotFound: the folder holds no commit.
        SnapshotNotFound: it has no commit of this number.
        LakeCorrupt: the log itself is damaged.
    """
    state = read_state(lake_dir, number) if log is None else log.find(number)
    if not check_digests:
        return Snapshot(lake_dir, state, list_lacking(lake_dir))
    began_s = clock()
    trusted = earlier if earlier and earlier.is_sound_until(began_s) else None
    files = trusted.list_new(state) if trusted else (*state.files, *state.segments)
    damage = find_damage(lake_dir, files, trust_earlier=True)
    snapshot = Snapshot(lake_dir, state, [*list_lacking(lake_dir), *damage])
    ended_s = clock()
    snapshot.checked_until_s = (
        trusted.checked_until_s if trusted else ended_s + REST * (ended_s - began_s)
    )
    groups = {**snapshot.sound_files(), SEGMENT_FOLDER: snapshot.segments}
    snapshot.watch = FileWatch(lake_dir, groups)
    return snapshot

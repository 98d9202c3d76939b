"""Snapshots: one commit, and the files live after it.

A snapshot never changes: files are immutable, and a later commit is another snapshot.

A lease on commit N, by which sweeps leave the snapshot's files and its log entry alone, is a shared
lock on byte N of ``_log/leases``. The system releases it however the reader ends, nothing is
written, and a reader needs no right to write. Without the file, as on media that cannot be written,
readers have only the grace period; where the system has no such locks, the longer one.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec
from msgspec import UNSET

from tonlake.lake.errors import LakeCorrupt, TableLacking
from tonlake.lake.log.digest import find_changed, find_damage
from tonlake.lake.log.envelope import read_body
from tonlake.lake.log.place import read_place
from tonlake.lake.log.ranges import Range, cut_ranges
from tonlake.lake.log.state import (
    LOG_FOLDER,
    SEGMENT_FOLDER,
    Baseline,
    Commit,
    DataFile,
    LogReader,
    LogState,
    read_commit,
    read_first,
    read_state,
)
from tonlake.lake.schema import BLOCKS, TABLES
from tonlake.lake.system import find_shared, share_byte

SELECTION_FILE = f"{LOG_FOLDER}/selection.json"
_DAYS = re.compile(r"([0-9-]{10})?\.\.([0-9-]{10})?|([0-9-]{10})")


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """UTC days ``YYYY-MM-DD``, both ends included, and table names; None: no bound, all tables."""

    first_day: str | None = None
    last_day: str | None = None
    tables: tuple[str, ...] | None = None

    def has(self, path: str) -> bool:
        """Whether these days and tables include the data file of a path."""
        is_chosen = self.tables is None or path[: path.find("/")] in self.tables
        return is_chosen and self.has_day(read_place(path).day)

    def has_day(self, day: str) -> bool:
        """Whether a day is included."""
        return (self.first_day or "") <= day and (self.last_day is None or day <= self.last_day)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The tables that are left out."""
        return () if self.tables is None else tuple(sorted(TABLES.keys() - set(self.tables)))

    def narrow(self, other: "Selection") -> "Selection":
        """Return the intersection of both selections."""
        last_days = [day for day in (self.last_day, other.last_day) if day is not None]
        chosen = self.tables if other.tables is None else other.tables
        if self.tables is not None and other.tables is not None:
            chosen = tuple(name for name in self.tables if name in other.tables)
        first_day = max(self.first_day or "", other.first_day or "") or None
        return Selection(first_day, min(last_days, default=None), chosen)


WHOLE = Selection()
"""Every day and table."""


def parse_days(text: str) -> tuple[str | None, str | None]:
    """Return the first and the last day of ``A..B``, ``A..``, ``..B`` or ``A``; None: no bound."""
    match = _DAYS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a range of days: write a day or 2026-11-01..2026-11-30")
    first, last = match[3] or match[1], match[3] or match[2]
    for day in filter(None, (first, last)):
        try:
            date.fromisoformat(day)
        except ValueError as error:
            raise ValueError(f"{day} is not a day: {error}") from error
    if first and last and first > last:
        raise ValueError(f"{text!r} ends before it begins")
    return first, last


def select_tables(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the table names, sorted, with ``blocks``: without it a lake has no ranges."""
    unknown = sorted(set(names) - TABLES.keys())
    if unknown:
        raise ValueError(f"there is no table {unknown[0]!r}: tonlake schema lists them")
    return tuple(sorted({*names, BLOCKS.name}))


def read_selection(lake_dir: Path) -> Selection:
    """Return the selection of a lake; ``WHOLE`` if it is not a partial copy."""
    if not (lake_dir / SELECTION_FILE).exists():
        return WHOLE
    return read_body(lake_dir, SELECTION_FILE, Selection)[0]


def list_lacking(lake_dir: Path) -> list[TableLacking]:
    """Return an error for each table left out of a partial copy."""
    return [TableLacking(name) for name in read_selection(lake_dir).lacking]


REST = 20
"""A sweep over a group of files is followed by a pause of this many times its duration."""


class FileWatch:
    """Notices files that changed since their digests were checked, in groups.

    Sweeps, of 1 µs per file, take at most 5 % of the time: of 50,000 one begins each second.
    """

    def __init__(
        self,
        lake_dir: Path,
        groups: Mapping[str, Sequence[DataFile]],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take the files by group, all just verified; ``clock`` returns seconds."""
        self._lake_dir, self._groups, self._clock = lake_dir.absolute(), groups, clock
        self._due_s: dict[str, float] = {}
        self.damaged = False
        """Whether a file is damaged, so that the snapshot must be reopened."""

    def check(self, group: str, *, always: bool = False, gone: bool = False) -> None:
        """Compare the files of a group, unless that was done recently and ``always`` is False.

        With ``gone``, when one cannot be opened, files that are gone count as damaged, too.
        """
        started_s = self._clock()
        if not always and started_s < self._due_s.get(group, 0.0):
            return
        changed = find_changed(str(self._lake_dir), self._groups.get(group, ()), gone=gone)
        if changed:
            damage = find_damage(self._lake_dir, changed)
            if damage:
                self.damaged = True
                raise damage[0]
        ended_s = self._clock()
        self._due_s[group] = ended_s + REST * (ended_s - started_s)


class Snapshot:
    """The lake as of one commit; ``damaged`` maps damaged and left-out tables to the error."""

    def __init__(self, lake_dir: Path, state: LogState, damage: Iterable[LakeCorrupt] = ()) -> None:
        """Take the state after a commit; use ``open_snapshot`` to get a snapshot."""
        self.lake_dir = lake_dir
        self.state = state
        self.number: int = state.number
        self.ranges: tuple[Range, ...] = state.ranges
        self.known_ranges: tuple[Range, ...] = state.known_ranges
        """Ranges that account states are complete for, pruned ones included."""
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
        # An index segment has no data of its own; a damaged one can be left out.
        self.segments = tuple(segment for segment in state.segments if segment.path not in broken)
        self.lease: Lease | None = None
        """Keeps the files; none if they are kept otherwise."""
        self.watch = FileWatch(lake_dir, {})
        """Checks files by table, and segments as group ``lookups``; no files without digests."""
        self.bound: int | None = None
        """Last masterchain block whose rows are shown; None: all (see ``up_to``)."""
        self.checked_until_s = float("-inf")
        """Time from which opening a later snapshot checks all files again."""

    @property
    def first_mc_seqno(self) -> int:
        """First masterchain block that the snapshot has."""
        return self.ranges[0][0]

    @property
    def last_mc_seqno(self) -> int:
        """Last masterchain block that the snapshot has."""
        return self.ranges[-1][1]

    def has_every_account(self, mc_seqno: int) -> bool:
        """Whether the baseline and the blocks after it give all accounts as of a block.

        One read from a later state than its own covers blocks from that state on.
        """
        baseline = self.baseline
        if baseline is None or baseline.accounts != "all":
            return False
        is_read = baseline.state_mc_seqno <= mc_seqno
        return is_read and any(
            first <= baseline.mc_seqno + 1 <= mc_seqno <= last for first, last in self.known_ranges
        )

    def is_sound_until(self, now_s: float) -> bool:
        """Whether no file was found damaged, and all files were checked recently."""
        is_sound = all(isinstance(error, TableLacking) for error in self.damaged.values())
        is_sound = is_sound and len(self.segments) == len(self.state.segments)
        return is_sound and not self.watch.damaged and now_s < self.checked_until_s

    @property
    def lacking(self) -> tuple[str, ...]:
        """Tables that a partial copy leaves out."""
        errors = self.damaged.values()
        return tuple(error.file for error in errors if isinstance(error, TableLacking))

    def up_to(self, mc_seqno: int) -> "Snapshot":
        """Return the lake as of a masterchain block; it has no segments, so SQL answers."""
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
        """Every commit of the log up to this one, read on first access."""
        first = read_first(self.lake_dir)
        return tuple(read_commit(self.lake_dir, at)[0] for at in range(first, self.number + 1))

    def sound_files(self) -> dict[str, tuple[DataFile, ...]]:
        """Return the files of the tables that can be queried."""
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

    With ``check_digests``, every file that this process has not verified yet is read; a damaged one
    does not stop other tables from being queried. Files of a sound ``earlier`` snapshot are not
    even looked at while that would take more than 5 % of the time; ``clock`` returns seconds.

    Raises LakeNotFound, SnapshotNotFound or, for the log itself, LakeCorrupt.
    """
    state = read_state(lake_dir, number) if log is None else log.find(number)
    lease = Lease(lake_dir, state.number)
    if not check_digests:
        snapshot = Snapshot(lake_dir, state, list_lacking(lake_dir))
        snapshot.lease = lease
        return snapshot
    began_s = clock()
    trusted = earlier if earlier and earlier.is_sound_until(began_s) else None
    files = trusted.list_new(state) if trusted else (*state.files, *state.segments)
    damage = find_damage(lake_dir, files, trust_earlier=True)
    snapshot = Snapshot(lake_dir, state, [*list_lacking(lake_dir), *damage])
    snapshot.lease = lease
    ended_s = clock()
    snapshot.checked_until_s = (
        trusted.checked_until_s if trusted else ended_s + REST * (ended_s - began_s)
    )
    groups = {**snapshot.sound_files(), SEGMENT_FOLDER: snapshot.segments}
    snapshot.watch = FileWatch(lake_dir, groups)
    return snapshot


LEASE_FILE = f"{LOG_FOLDER}/leases"


class Lease:
    """Keeps the files of a snapshot until it is closed or forgotten."""

    def __init__(self, lake_dir: Path, number: int) -> None:
        """Take the lease on commit ``number``; none if the lake's folder does not allow it."""
        self._descriptor: int | None = None
        with suppress(OSError):
            self._descriptor = _open_file(lake_dir)
            share_byte(self._descriptor, number)

    def close(self, release: Callable[[int], None] = os.close) -> None:
        """Give the lease back; at the interpreter's end ``os`` may be gone before the lease."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            release(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
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
        descriptor = os.open(lake_dir / LEASE_FILE, os.O_RDONLY | os.O_CLOEXEC)
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

"""Removes files that no snapshot in use has, replaced or left by a crash, and old log entries."""

import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tonlake.lake.commit.commit import CHECKPOINT_COMMITS
from tonlake.lake.commit.delta import FOLDER, find_published, list_published
from tonlake.lake.errors import LakeCorrupt, LakeError
from tonlake.lake.log.disk import (
    HELD_FILE,
    LOCK_FILE,
    TEMPORARY_PREFIX,
    hold_lock,
    reach,
    sync_folder,
    write_file,
)
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.snapshot import list_leased
from tonlake.lake.log.state import (
    FIRST_FILE,
    LOG_FOLDER,
    PACK_FOLDER,
    SEGMENT_FOLDER,
    FirstEntry,
    LogReader,
    LogState,
    checkpoint_name,
    entry_name,
    list_log,
    read_checkpoint,
    read_commit,
    read_state,
)
from tonlake.lake.schema import TABLES
from tonlake.lake.settings import LakeSettings
from tonlake.lake.system import has_leases

LEASED_COMMITS = 20_000
"""A snapshot that stays open for more commits than this loses its lease."""


def list_orphans(lake_dir: Path, state: LogState) -> list[Path]:
    """Return, sorted, temporary files, and data files that no state, lease or Delta log lists."""
    live = {lake_dir / name for name in _list_held(lake_dir, state)}
    data_files = (path for name in TABLES for path in (lake_dir / name).glob("day=*/*.parquet"))
    packs = lake_dir.glob(f"{PACK_FOLDER}/day=*/*.arrows")
    temporary = (
        path
        for pattern in (
            *(".", LOG_FOLDER, SEGMENT_FOLDER, f"{PACK_FOLDER}/day=*"),
            *(f"{name}/{folder}" for name in TABLES for folder in ("day=*", FOLDER)),
        )
        for path in lake_dir.glob(f"{pattern}/{TEMPORARY_PREFIX}*")
    )
    segments = lake_dir.glob(f"{SEGMENT_FOLDER}/[0-9]*-[0-9]*")
    return sorted({*data_files, *packs, *segments, *temporary} - live)


def _list_held(lake_dir: Path, state: LogState) -> set[str]:
    """Return the paths of the files that a state, a lease, a Delta log or the views have."""
    held = list_published(lake_dir, state) | state.stored
    for number in _list_leased(lake_dir, state):
        with suppress(LakeError):  # that snapshot cannot be read any more
            held |= read_state(lake_dir, number).stored
    return held


def _list_leased(lake_dir: Path, state: LogState) -> list[int]:
    first = state.number - LEASED_COMMITS
    return [number for number in list_leased(lake_dir, state.number) if number > first]


def sweep_orphans(lake_dir: Path, settings: LakeSettings) -> list[Path]:
    """Remove orphans after their grace period, and shorten the log; return what was removed.

    Nothing is removed while another writer is active, or if the folder has no log.
    """
    sweeper = Sweeper(lake_dir, settings)
    sweeper.look()
    return sweeper.sweep()


class Sweeper:
    """Sweeps a growing lake again and again, at a cost by what was replaced since the last time.

    All files are listed at first, and once in ``orphan_grace_s``: crashes leave unknown ones.
    """

    def __init__(
        self, lake_dir: Path, settings: LakeSettings, log: LogReader | None = None
    ) -> None:
        """Take a lake, and a reader of its log, if there is one."""
        self._lake_dir, self._settings = lake_dir, settings
        self._log, self._state = log or LogReader(lake_dir), LogState()
        self._graces_s: dict[str, int] = {}
        """The grace periods of files that may go, by path."""
        self._listed_s = float("-inf")
        self._swept_s = time.monotonic()
        self._first = 0
        """The entry that the log began with when it was listed last."""

    def sweep_if_due(self) -> bool:
        """Sweep once in the shortest grace period; return whether it was time."""
        shortest_s = min(self._settings.replaced_grace_s, self._settings.orphan_grace_s)
        if time.monotonic() - self._swept_s <= shortest_s:
            return False
        self.sweep()  # what was found the last time: the clock may have jumped
        self.look()
        self._swept_s = time.monotonic()
        return True

    def look(self) -> None:
        """Find files that may go later."""
        before, self._state = self._state, self._log.read()
        grace_s = self._settings.orphan_grace_s
        entries: Iterable[int] = range(before.number + 1, self._state.number + 1)
        if time.monotonic() - self._listed_s >= grace_s:
            self._listed_s = time.monotonic()
            entries = list_log(self._lake_dir)[0]
            orphans = list_orphans(self._lake_dir, self._state)
            names = (str(path.relative_to(self._lake_dir)) for path in orphans)
            self._graces_s = dict.fromkeys(names, grace_s)
        known = before.stored
        for number in entries:
            with suppress(LakeError):  # verify reports damage
                commit = read_commit(self._lake_dir, number)[0]
                known |= {file.stored for file in (*commit.added, *(commit.segments or ()))}
                known |= self._graces_s.keys() & commit.removed
        short_s = min(self._settings.replaced_grace_s, grace_s) if has_leases() else grace_s
        self._graces_s.update(dict.fromkeys(known - self._state.stored, short_s))

    def sweep(self) -> list[Path]:
        """Remove files that were found and are still orphans; return them."""
        if not (self._lake_dir / LOG_FOLDER).is_dir():
            return []
        removed = []
        with hold_lock(self._lake_dir / LOCK_FILE, wait=False) as is_held:
            if not is_held:
                return []
            state = self._log.read()
            # A writer may have died before it synced its entry. Files that the entry replaces may
            # be removed only once no power failure can undo it.
            sync_folder(self._lake_dir / LOG_FOLDER)
            due = self._list_due(time.time())
            held = _list_held(self._lake_dir, state) if due else set()
            for name in (name for name in due if name not in held):
                path = self._lake_dir / name
                with suppress(FileNotFoundError):  # another sweep took it, or a copy has none
                    if path.is_dir() and not path.is_symlink():
                        with hold_lock(path / HELD_FILE, wait=False) as is_left:
                            if not is_left:
                                continue
                            shutil.rmtree(path)  # a killed process sorted rows there
                    else:
                        path.unlink()
                    removed.append(path)
                    reach("sweep.removed")
                del self._graces_s[name]
            self._shorten_log(state)
        return removed

    def _list_due(self, now_s: float) -> list[str]:
        """Return the files whose grace period is over, or that are gone."""
        due = []
        for name, grace_s in sorted(self._graces_s.items()):
            path = self._lake_dir / name
            try:
                # Whether a folder with a lock is in use does not depend on its age.
                changed_s = 0.0 if (path / HELD_FILE).exists() else path.stat().st_mtime
            except FileNotFoundError:
                changed_s = 0.0
            if changed_s <= now_s - grace_s:
                due.append(name)
        return due

    def _shorten_log(self, state: LogState) -> None:
        """Remove the entries before the last checkpoint that is old enough for the settings.

        Entries not yet in a Delta log, or leased, stay. An interruption leaves a log that can be
        read.
        """
        lake_dir, settings = self._lake_dir, self._settings
        if state.number <= settings.log_entries:
            return
        last = min(
            state.number - settings.log_entries,
            find_published(lake_dir, state),
            *_list_leased(lake_dir, state),
        )
        if self._first and last - last % CHECKPOINT_COMMITS <= self._first:
            return
        entries, checkpoints = list_log(lake_dir)
        self._first = entries[0]
        newest_s = time.time() - settings.log_age_s
        for first in reversed([at for at in checkpoints if entries[0] < at <= last]):
            is_old = (lake_dir / LOG_FOLDER / checkpoint_name(first)).stat().st_mtime <= newest_s
            with suppress(LakeCorrupt):
                _commit, digest = read_commit(lake_dir, first)
                if is_old and read_checkpoint(lake_dir, first).digest == digest:
                    break
        else:
            return
        write_file(lake_dir / FIRST_FILE, encode_entry(FirstEntry(first))[0], "checkpoint")
        gone = [checkpoint_name(at) for at in checkpoints if at < first]
        gone += [entry_name(at) for at in entries if at < first]
        for name in gone:
            (lake_dir / LOG_FOLDER / name).unlink(missing_ok=True)
            reach("sweep.shortened")
        self._first = first

"""Removes files that no snapshot in use has, replaced or left by a crash, and old log entries."""

import shutil
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tonlake.lake.commit.delta import FOLDER, find_published, list_published
from tonlake.lake.errors import LakeCorrupt, LakeError
from tonlake.lake.log.disk import (
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
    states = [state]
    for number in _list_leased(lake_dir, state):
        with suppress(LakeError):  # that snapshot cannot be read any more
            states.append(read_state(lake_dir, number))
    live = {lake_dir / file.stored for one in states for file in (*one.files, *one.segments)}
    live |= {lake_dir / path for path in list_published(lake_dir, state)}
    data_files = (path for name in TABLES for path in (lake_dir / name).glob("day=*/*.parquet"))
    packs = lake_dir.glob(f"{PACK_FOLDER}/day=*/*.arrows")
    temporary = (
        path
        for pattern in (
            *(LOG_FOLDER, SEGMENT_FOLDER, f"{PACK_FOLDER}/day=*"),
            *(f"{name}/{folder}" for name in TABLES for folder in ("day=*", FOLDER)),
        )
        for path in lake_dir.glob(f"{pattern}/{TEMPORARY_PREFIX}*")
    )
    segments = lake_dir.glob(f"{SEGMENT_FOLDER}/[0-9]*-[0-9]*")
    return sorted({*data_files, *packs, *segments, *temporary} - live)


def _list_replaced(lake_dir: Path) -> set[str]:
    """Return the paths that entries removed, and of all packs and index segments they list."""
    paths: set[str] = set()
    for number in list_log(lake_dir)[0]:
        with suppress(LakeError):  # verify reports damage
            commit = read_commit(lake_dir, number)[0]
            paths.update(commit.removed, (segment.path for segment in commit.segments or ()))
            paths.update(file.pack for file in commit.added)
    return paths


def _list_leased(lake_dir: Path, state: LogState) -> list[int]:
    first = state.number - LEASED_COMMITS
    return [number for number in list_leased(lake_dir, state.number) if number > first]


def sweep_orphans(
    lake_dir: Path, settings: LakeSettings, among: Collection[Path] | None = None
) -> list[Path]:
    """Remove orphans, or those ``among`` some, after their grace period; shorten the log.

    Nothing is removed while another writer is active, or if the folder has no log.
    """
    if not (lake_dir / LOG_FOLDER).is_dir():
        return []
    removed = []
    with hold_lock(lake_dir / LOCK_FILE, wait=False) as held:
        if not held:
            return []
        state = LogReader(lake_dir).read()
        # A writer may have died before it synced its entry. Files that the entry replaces may be
        # removed only once no power failure can undo it.
        sync_folder(lake_dir / LOG_FOLDER)
        now_s, replaced = time.time(), _list_replaced(lake_dir)
        for path in list_orphans(lake_dir, state):
            is_meant = among is None or path in among
            grace_s = settings.orphan_grace_s
            if has_leases() and str(path.relative_to(lake_dir)) in replaced:
                grace_s = min(settings.replaced_grace_s, grace_s)
            if is_meant and path.stat().st_mtime <= now_s - grace_s:
                if path.is_dir() and not path.is_symlink():  # a killed process sorted rows there
                    shutil.rmtree(path)
                else:
                    path.unlink()
                removed.append(path)
                reach("sweep.removed")
        _shorten_log(lake_dir, state, settings)
    return removed


def _shorten_log(lake_dir: Path, state: LogState, settings: LakeSettings) -> None:
    """Remove the entries before the last checkpoint that is old enough for the settings.

    Entries not yet in a Delta log, or leased, stay. An interruption leaves a log that can be read.
    """
    if state.number <= settings.log_entries:
        return
    entries, checkpoints = list_log(lake_dir)
    last = min(
        state.number - settings.log_entries,
        find_published(lake_dir, state),
        *_list_leased(lake_dir, state),
    )
    first = _find_checkpoint(lake_dir, [at for at in checkpoints if at <= last], settings)
    if not first or first == entries[0]:
        return
    write_file(lake_dir / FIRST_FILE, encode_entry(FirstEntry(first))[0], "checkpoint")
    gone = [checkpoint_name(at) for at in checkpoints if at < first]
    gone += [entry_name(at) for at in entries if at < first]
    for name in gone:
        (lake_dir / LOG_FOLDER / name).unlink(missing_ok=True)
        reach("sweep.shortened")


def _find_checkpoint(lake_dir: Path, checkpoints: list[int], settings: LakeSettings) -> int:
    """Return the last checkpoint that is old enough and sound; 0 if there is none."""
    newest_s = time.time() - settings.log_age_s
    for number in reversed(checkpoints):
        written_s = (lake_dir / LOG_FOLDER / checkpoint_name(number)).stat().st_mtime
        with suppress(LakeCorrupt):
            is_sound = written_s <= newest_s and (
                read_checkpoint(lake_dir, number).digest == read_commit(lake_dir, number)[1]
            )
            if is_sound:
                return number
    return 0

"""Removes files that the newest snapshot does not use: replaced, or left by a crash."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from tonlake.lake.commit.delta import FOLDER, list_published
from tonlake.lake.log.disk import LOCK_FILE, TEMPORARY_PREFIX, hold_lock, reach, sync_folder
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import LOG_FOLDER, SEGMENT_FOLDER
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from tonlake.lake.log.state import LogState


def list_orphans(lake_dir: Path, state: LogState) -> list[Path]:
    """Return the data files that are not live in ``state``, and all temporary files, sorted.

    Files that the Delta logs still list are live.
    """
    live = {lake_dir / file.path for file in (*state.files, *state.segments)}
    live |= {lake_dir / path for path in list_published(lake_dir, state)}
    data_files = (path for name in TABLES for path in (lake_dir / name).glob("day=*/*.parquet"))
    temporary = (
        path
        for pattern in (
            *(LOG_FOLDER, SEGMENT_FOLDER),
            *(f"{name}/{folder}" for name in TABLES for folder in ("day=*", FOLDER)),
        )
        for path in lake_dir.glob(f"{pattern}/{TEMPORARY_PREFIX}*")
    )
    segments = lake_dir.glob(f"{SEGMENT_FOLDER}/[0-9]*-[0-9]*")
    return sorted({*data_files, *segments, *temporary} - live)


def sweep_orphans(
    lake_dir: Path, grace_s: int, among: Collection[Path] | None = None
) -> list[Path]:
    """Remove the orphans unchanged for ``grace_s`` seconds, and return them.

    ``among`` limits this to some paths. Nothing is removed while another writer is active, or if
    the folder has no log.
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
        newest_s = time.time() - grace_s
        for path in list_orphans(lake_dir, state):
            is_meant = among is None or path in among
            if is_meant and path.stat().st_mtime <= newest_s:
                _remove(path)
                removed.append(path)
                reach("sweep.removed")
    return removed


def _remove(path: Path) -> None:
    """Remove a file, or a folder in which a killed process sorted rows."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()

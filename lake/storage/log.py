"""Reads the log of a lake in object storage: the few files of it that a state needs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tonlake.lake.errors import LakeNotFound, SnapshotNotFound
from tonlake.lake.log.selection import SELECTION_FILE, list_lacking
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import (
    LOG_FOLDER,
    checkpoint_name,
    entry_name,
    number_names,
    read_state,
)
from tonlake.lake.storage.storage import work_through

if TYPE_CHECKING:
    from collections.abc import Collection

    from tonlake.lake.storage.storage import Storage


def list_log_names(storage: Storage) -> list[str]:
    """Return the names of the files of a log; none if there is no lake.

    Raises:
        StorageError: object storage does not answer.
    """
    return [path.rpartition("/")[2] for path in storage.list_files([LOG_FOLDER])]


def list_needed(names: Collection[str], number: int | None) -> list[str]:
    """Return the log files that a state needs: the newest checkpoint, and the entries after it."""
    entries, checkpoints = number_names(names)
    last = max(entries, default=0) if number is None else number
    newest = max((at for at in checkpoints if at <= last), default=0)
    found = [entry_name(at) for at in entries if newest <= at <= last]
    return [checkpoint_name(newest), *found] if newest else found


def fetch_log(storage: Storage, names: Collection[str], number: int, folder: Path) -> None:
    """Copy into a folder what ``read_state`` and ``read_selection`` need of a log.

    Raises:
        StorageError: object storage does not answer.
    """
    (folder / LOG_FOLDER).mkdir(exist_ok=True)
    needed = [f"{LOG_FOLDER}/{name}" for name in list_needed(names, number)]
    needed += [SELECTION_FILE] if SELECTION_FILE.rpartition("/")[2] in names else []
    for path, data in zip(needed, work_through(storage.read, needed, storage), strict=True):
        (folder / path).write_bytes(data)


def open_remote(storage: Storage, number: int | None = None) -> Snapshot:
    """Open a lake in storage as of commit ``number``, the newest by default.

    Digests of data files are not verified; ``lake.copy`` does that.

    Raises:
        LakeNotFound: there is none; SnapshotNotFound: it has no commit of this number.
        LakeCorrupt: the log is damaged.
        StorageError: object storage does not answer.
    """
    names = list_log_names(storage)
    entries = number_names(names)[0]
    if not entries:
        raise LakeNotFound(f"{storage.name} holds no lake: no commit in {LOG_FOLDER}/")
    number = entries[-1] if number is None else number
    if number > entries[-1]:
        raise SnapshotNotFound(f"{storage.name} has commits 1 to {entries[-1]}, and no {number}")
    with tempfile.TemporaryDirectory(prefix="tonlake-log-") as name:
        folder = Path(name)
        fetch_log(storage, names, number, folder)
        return Snapshot(Path(storage.root), read_state(folder, number), list_lacking(folder))

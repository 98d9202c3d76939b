"""Adopts entries of another lake's log, all at once for every reader.

Files of intermediate commits may be gone, merged into others, so no reader may mistake one of those
commits for the newest. The newest entry is linked first, together with a checkpoint that makes it
readable on its own; then the others, the one that a reader waits for last.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tonlake.lake.commit.commit import CHECKPOINT_COMMITS, thin_checkpoints
from tonlake.lake.errors import CommitConflict, LakeCorrupt
from tonlake.lake.log.crash import reach
from tonlake.lake.log.disk import begin_grace, naming_full_disk, sync_folder, write_file
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.state import LOG_FOLDER, checkpoint_name, entry_name, list_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tonlake.lake.log.state import LogState


def adopt_entries(lake_dir: Path, staged: Path, before: LogState, after: LogState) -> None:
    """Make the staged entries after ``before``, up to ``after``, part of the log.

    The caller holds the lock and has written the files of ``after``. ``staged`` is a folder on the
    same file system, with its own ``_log``.

    Raises:
        CommitConflict: another writer committed meanwhile; LakeFull: no room. Nothing changed.
    """
    _sync_staged(staged, before.number, after.number)
    files = {file.path for file in (*after.files, *after.segments)}
    known = (file.path for file in (*before.files, *before.segments))
    begin_grace(lake_dir, (path for path in known if path not in files))
    is_due = after.number // CHECKPOINT_COMMITS > before.number // CHECKPOINT_COMMITS
    checkpoint = lake_dir / LOG_FOLDER / checkpoint_name(after.number)
    if is_due or after.number > before.number + 1:
        write_file(checkpoint, encode_entry(after)[0], "checkpoint")
    _adopt(lake_dir, staged, after.number)
    sync_folder(lake_dir / LOG_FOLDER)
    reach("pull.adopted")
    numbers = range(before.number + 1, after.number + 1)
    _fill(lake_dir, staged, numbers[:-1])
    _remove(staged, numbers)
    if is_due:
        thin_checkpoints(lake_dir, after.number - after.number % CHECKPOINT_COMMITS)
    else:
        checkpoint.unlink(missing_ok=True)


def fill_log(lake_dir: Path, staged: Path) -> None:
    """Adopt the earlier entries that a killed process left staged; then remove the folder.

    Raises:
        LakeCorrupt: a staged entry is missing.
        LakeFull: no room; the lake is readable nevertheless.
    """
    entries = list_log(lake_dir)[0]
    newest = entries[-1] if entries else 0
    _fill(lake_dir, staged, sorted(set(range(1, newest + 1)) - set(entries)))
    _remove(staged, [number for number in list_log(staged)[0] if number <= newest])


def _fill(lake_dir: Path, staged: Path, missing: Sequence[int]) -> None:
    for number in reversed(missing):
        _adopt(lake_dir, staged, number)
        reach("pull.filled")
    if missing:
        sync_folder(lake_dir / LOG_FOLDER)


def _remove(staged: Path, numbers: Iterable[int]) -> None:
    for number in numbers:
        (staged / LOG_FOLDER / entry_name(number)).unlink()


def _sync_staged(staged: Path, before: int, after: int) -> None:
    """Make staged entries durable before the newest one makes the others necessary."""
    if after > before + 1:
        os.sync()  # syncing a hundred thousand files one by one takes minutes
    else:
        with (staged / LOG_FOLDER / entry_name(after)).open("rb") as stream:
            os.fsync(stream.fileno())
    reach("pull.synced")


def _adopt(lake_dir: Path, staged: Path, number: int) -> None:
    name = f"{LOG_FOLDER}/{entry_name(number)}"
    try:
        with naming_full_disk(lake_dir / name):
            os.link(staged / name, lake_dir / name)
    except FileNotFoundError as error:
        raise LakeCorrupt(name, "it is missing") from error
    except FileExistsError as error:
        raise CommitConflict(f"another writer created {name} at the same time") from error
    reach("log.linked")

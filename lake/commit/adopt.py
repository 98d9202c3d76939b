"""Entries of another lake's log into this one's: all of them at once, for whoever reads it.

Of the commits in between some files are gone, merged into others: nobody must see those commits as
the newest. So the newest entry comes first, beside a checkpoint that makes it readable alone; then
the others, the one that a reader waits for last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.commit.commit import CHECKPOINT_COMMITS, link_entry, thin_checkpoints
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.log.crash import reach
from tonlake.lake.log.disk import begin_grace, sync_folder, write_file, write_temporary
from tonlake.lake.log.envelope import encode_entry
from tonlake.lake.log.state import LOG_FOLDER, checkpoint_name, entry_name, list_log

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.log.state import LogState


def adopt_entries(lake_dir: Path, staged: Path, before: LogState, after: LogState) -> None:
    """Make the staged entries after ``before``, up to ``after``, part of the log.

    The caller holds the lock, and wrote the files of ``after``. ``staged`` is a folder with a
    ``_log`` of its own.

    Raises:
        CommitConflict: another writer has committed meanwhile; LakeFull: no room. Nothing changed.
    """
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
    fill_log(lake_dir, staged)
    if is_due:
        thin_checkpoints(lake_dir, after.number - after.number % CHECKPOINT_COMMITS)
    else:
        checkpoint.unlink(missing_ok=True)


def fill_log(lake_dir: Path, staged: Path) -> None:
    """Adopt the entries before the newest that a killed process left staged; then remove all.

    Raises:
        LakeCorrupt: one is not there.
        LakeFull: no room; the lake is readable all the same.
    """
    entries = list_log(lake_dir)[0]
    newest = entries[-1] if entries else 0
    missing = sorted(set(range(1, newest + 1)) - set(entries), reverse=True)
    for number in missing:
        _adopt(lake_dir, staged, number)
        reach("pull.filled")
    if missing:
        sync_folder(lake_dir / LOG_FOLDER)
    for number in list_log(staged)[0]:
        if number <= newest:
            (staged / LOG_FOLDER / entry_name(number)).unlink()


def _adopt(lake_dir: Path, staged: Path, number: int) -> None:
    name = entry_name(number)
    try:
        data = (staged / LOG_FOLDER / name).read_bytes()
    except FileNotFoundError as error:
        raise LakeCorrupt(f"{LOG_FOLDER}/{name}", "it is missing") from error
    entry = lake_dir / LOG_FOLDER / name
    link_entry(write_temporary(entry, data, "log"), entry)

"""The whole state that a lake begins with, into the lake: one commit without blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.commit.rewrite import commit_maintenance, spool_files
from tonlake.lake.commit.validation import check_rows
from tonlake.lake.errors import CommitConflict
from tonlake.lake.file.datafile import write_changes
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.place import Derivation, NewFile, Place, list_places
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

    from tonlake.lake.log.state import Baseline, Commit, LogState
    from tonlake.lake.settings import LakeSettings


def baseline_place(state: LogState) -> Place:
    """Return where the baseline of a lake stands: at the block before its first."""
    first = list_places(state)[0]
    return Place(first.first - 1, first.first - 1, first.day, is_baseline=True)


def commit_baseline(
    lake_dir: Path,
    state: LogState,
    baseline: Baseline,
    parts: Iterable[tuple[str, pa.Table]],
    settings: LakeSettings,
) -> Commit:
    """Commit the rows of a baseline, which ``parts`` yields by table, each part a file.

    The parts wait in a file without a name until all are there, so others may commit meanwhile.

    Raises:
        RowsRejected: rows that do not fit the schema.
        CommitConflict: blocks were undone meanwhile, or the lake's first block is another now.
        LakeFull: no room; nothing was committed.
    """
    place = baseline_place(state)
    files = (NewFile(name, place, check_rows(rows, TABLES[name])) for name, rows in parts)
    with spool_files(lake_dir, files) as spooled, hold_lock(lake_dir / LOCK_FILE):
        now = read_state(lake_dir)
        known = now.baseline is not msgspec.UNSET
        if known or now.undoings != state.undoings or baseline_place(now) != place:
            raise CommitConflict(
                f"{lake_dir}: the first blocks of the lake changed, or another baseline came, while"
                " the state was read; run the same command again"
            )
        added, removed = write_changes(lake_dir, now, Derivation(spooled, frozenset()), settings)
        return commit_maintenance(lake_dir, now, added=added, removed=removed, baseline=baseline)

"""Commits accounts fetched from lite servers to a table of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.file.datafile import write_changes
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.disk import LOCK_FILE, hold_lock
from tonlake.lake.log.place import Derivation, NewFile, list_files, list_places, read_place
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import FETCHED_ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tonlake.lake.log.place import Place
    from tonlake.lake.log.state import Commit, DataFile, LogState
    from tonlake.lake.settings import LakeSettings

_NAME = FETCHED_ACCOUNTS.name


def keep_fetched(
    lake_dir: Path, rows: pa.Table, most: int, settings: LakeSettings
) -> Commit | None:
    """Commit rows of ``fetched_accounts``; keep the ``most`` rows of the newest blocks.

    Rows are at the place of their block. Rows whose block was undone meanwhile are left out;
    return None if no row is left.

    Raises:
        LakeNotFound: the folder holds no lake.
        LakeCorrupt: a file of the table is damaged.
        LakeFull: no room; nothing was committed.
        OSError: the folder cannot be written.
    """
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        known = list_files(state, _NAME)
        old = [read_rows(lake_dir, file) for file in known]
        kept = _choose([*old, rows], most)
        files = frozenset(file.path for file in known)
        written = Derivation(_place_rows(kept, state, known), files)
        added, removed = write_changes(lake_dir, state, written, settings)
        if not added and not removed:
            return None
        return commit_maintenance(lake_dir, state, added=added, removed=removed)


def _choose(tables: list[pa.Table], most: int) -> pa.Table:
    """Return the newest row of each account, limited to those of the newest blocks."""
    rows = pa.concat_tables([table.select(FETCHED_ACCOUNTS.arrow.names) for table in tables])
    order = pc.sort_indices(rows, [("mc_seqno", "descending")])
    seen: set[tuple[int, bytes]] = set()
    chosen: list[int] = []
    for at in order.to_pylist():
        key = rows["workchain"][at].as_py(), rows["account"][at].as_py()
        if key not in seen and len(chosen) < most:
            seen.add(key)
            chosen.append(at)
    keys = [(name, "ascending") for name in FETCHED_ACCOUNTS.sort]
    return rows.take(pa.array(chosen, pa.int64())).sort_by(keys)


def _place_rows(rows: pa.Table, state: LogState, known: list[DataFile]) -> Iterator[NewFile]:
    """Yield a file for each place that has some of the rows."""
    places: set[Place] = {read_place(file.path) for file in known} | set(list_places(state))
    for place in sorted(places):
        here = pc.and_(
            pc.greater_equal(rows["mc_seqno"], place.first),
            pc.less_equal(rows["mc_seqno"], place.last),
        )
        mine = rows.filter(here)
        if mine.num_rows:
            yield NewFile(_NAME, place, mine)

"""Commits without blocks: files made anew from rows that the lake has already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.commit import append_commit
from lake.disk import begin_grace
from lake.log import Commit
from lake.place import read_place
from lake.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lake.log import DataFile, LogState


def commit_maintenance(
    lake_dir: Path,
    state: LogState,
    *,
    added: Iterable[DataFile] = (),
    removed: Iterable[str] = (),
    runs: tuple[DataFile, ...] | None = None,
) -> Commit:
    """Append a commit without blocks to the log; the caller holds the lock and wrote the files.

    The grace time of runs that are not live any more begins now, for those who still read an
    earlier snapshot.

    Raises:
        CommitConflict, LakeFull: nothing was committed, and the files that were added are gone.
    """
    commit = Commit(
        number=state.number + 1,
        first_mc_seqno=state.ranges[0][0],
        last_mc_seqno=state.ranges[-1][1],
        day=max(read_place(file.path).day for file in state.files),
        added=tuple(added),
        removed=tuple(sorted(removed)),
        schema_version=SCHEMA_VERSION,
        source={},
        shards={},
        zero_state=False,
        network=state.network,
        previous=state.digest,
        has_blocks=False,
        runs=runs,
    )
    kept = {run.path for run in (state.runs if runs is None else runs)}
    begin_grace(lake_dir, (run.path for run in state.runs if run.path not in kept))
    append_commit(lake_dir, state, commit)
    return commit

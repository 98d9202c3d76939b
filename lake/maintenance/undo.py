"""Removes blocks of an abandoned fork from the lake in a separate commit.

Every row of a lake belongs to one masterchain block: a file with blocks on both sides of the border
is rewritten without those that go, as a commit that ended at the border would have written it.
Earlier snapshots stay readable for the grace period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tonlake.lake.commit.commit import append_commit
from tonlake.lake.commit.delta import publish
from tonlake.lake.errors import UndoRefused
from tonlake.lake.file.datafile import remove_files, write_changes
from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.disk import LOCK_FILE, begin_grace, hold_lock
from tonlake.lake.log.place import Derivation, is_open, list_places, read_place
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import Commit, read_state
from tonlake.lake.maintenance.cut import cut_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tonlake.lake.log.place import NewFile
    from tonlake.lake.log.state import LogState
    from tonlake.lake.settings import LakeSettings


Reopen = Callable[["LogState", int], Iterable["NewFile"]]
"""Derives the open files of a lake without the blocks from a seqno on, from the earlier lake."""


def undo_after(
    lake_dir: Path,
    last_kept: int,
    settings: LakeSettings,
    *,
    max_mc_blocks: int,
    source: Mapping[str, str],
    reopen: Reopen,
) -> Commit | None:
    """Remove every masterchain block after ``last_kept`` from the lake; None if there is none.

    ``source`` is a fingerprint of the node; ``reopen`` derives the files of rows that become
    unfinished again.

    Raises:
        UndoRefused: more than ``max_mc_blocks`` blocks would go, or all of them.
        LakeCorrupt: a required file is damaged.
        LakeFull: no room; nothing was undone.
    """
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        newest = state.ranges[-1][1]
        if newest <= last_kept:
            return None
        first_gone = last_kept + 1
        day = _check_border(state, last_kept, max_mc_blocks)
        gone = {
            file.path
            for file in state.files
            if is_open(file.path) or read_place(file.path).last >= first_gone
        }
        reopened = Derivation(reopen(state, first_gone), frozenset(gone))
        spanning = [file for file in state.files if _spans(file.path, last_kept)]
        with ExitStack() as undo:
            cut = cut_files(lake_dir, spanning, (0, last_kept), settings)
            undo.callback(lambda: remove_files(lake_dir, cut))
            changes = write_changes(lake_dir, state, reopened, settings)
            undo.pop_all()
        segments = tuple(segment for segment in state.segments if range_of(segment)[1] <= last_kept)
        begin_grace(
            lake_dir, (segment.path for segment in state.segments if segment not in segments)
        )
        commit = Commit(
            number=state.number + 1,
            first_mc_seqno=first_gone,
            last_mc_seqno=newest,
            day=day,
            added=(*cut, *changes.added),
            removed=changes.removed,
            source=dict(source),
            network=state.network,
            previous=state.digest,
            has_blocks=False,
            segments=segments,
            undone=True,
        )
        append_commit(lake_dir, state, commit)
    publish(LogReader(lake_dir), settings)
    return commit


def _spans(path: str, last_kept: int) -> bool:
    """Whether a file has blocks on both sides of the border."""
    place = read_place(path)
    return not place.is_open and place.first <= last_kept < place.last


def _check_border(state: LogState, last_kept: int, max_mc_blocks: int) -> str:
    """Return the day of the last block that stays.

    Raises:
        UndoRefused: too many blocks would go, or all.
    """
    newest = state.ranges[-1][1]
    kept = [place for place in list_places(state) if state.last_pruned < place.first <= last_kept]
    if not kept:
        raise UndoRefused(
            f"the chain differs from the lake after masterchain block {last_kept}, and the lake"
            " begins after that: ingest into a new lake"
        )
    if newest - last_kept > max_mc_blocks:
        raise UndoRefused(
            f"the chain differs from the lake after masterchain block {last_kept}: to undo all up"
            f" to {newest}, set [follow] undo_mc_blocks to {newest - last_kept} or more (it is"
            f" {max_mc_blocks}); if the node is the wrong one, name another"
        )
    return kept[-1].day

"""Blocks that are no part of the chain any more, taken out of the lake by a commit of its own.

Where a file has blocks on both sides of the border it is written again without those that go. The
commit says which blocks are gone; earlier snapshots stay readable for the grace time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tonlake.lake.commit.commit import append_commit
from tonlake.lake.errors import UndoRefused
from tonlake.lake.file.datafile import remove_files, write_changes
from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.disk import LOCK_FILE, begin_grace, hold_lock
from tonlake.lake.log.place import Derivation, is_open, list_places, read_place
from tonlake.lake.log.state import Commit, read_state
from tonlake.lake.maintenance.cut import cut_files
from tonlake.lake.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tonlake.lake.log.place import NewFile
    from tonlake.lake.log.state import LogState
    from tonlake.lake.settings import LakeSettings

Reopen = Callable[["LogState", int], Iterable["NewFile"]]
"""Makes the open files of a lake without the blocks from a seqno on, from the lake before."""


def undo_after(
    lake_dir: Path,
    last_kept: int,
    settings: LakeSettings,
    *,
    most_mc_blocks: int,
    source: Mapping[str, str],
    reopen: Reopen,
) -> Commit | None:
    """Take every masterchain block after ``last_kept`` out of the lake; None if there is none.

    Args:
        lake_dir: Folder of the lake.
        last_kept: Newest masterchain block that is part of the chain.
        settings: File options.
        most_mc_blocks: More are not undone without a person's consent.
        source: Fingerprint of what says so.
        reopen: Makes the files of derived rows that become unfinished again.

    Raises:
        UndoRefused: more than ``most_mc_blocks`` blocks would go, or all of them.
        LakeCorrupt: a file that is needed is damaged.
        LakeFull: no room; nothing was undone.
    """
    with hold_lock(lake_dir / LOCK_FILE):
        state = read_state(lake_dir)
        newest = state.ranges[-1][1]
        if newest <= last_kept:
            return None
        first_gone = last_kept + 1
        day = _check_border(state, last_kept, most_mc_blocks)
        gone = {file.path for file in state.files if _goes(file.path, first_gone)}
        wanted = Derivation(reopen(state, first_gone), frozenset(gone))
        spanning = [file for file in state.files if _spans(file.path, last_kept)]
        with ExitStack() as undo:
            cut = cut_files(lake_dir, spanning, last_kept, settings)
            undo.callback(lambda: remove_files(lake_dir, cut))
            changes = write_changes(lake_dir, state, wanted, settings)
            undo.pop_all()
        runs = tuple(run for run in state.runs if range_of(run)[1] <= last_kept)
        begin_grace(lake_dir, (run.path for run in state.runs if run not in runs))
        commit = Commit(
            number=state.number + 1,
            first_mc_seqno=first_gone,
            last_mc_seqno=newest,
            day=day,
            added=(*cut, *changes.added),
            removed=changes.removed,
            schema_version=SCHEMA_VERSION,
            source=dict(source),
            shards={},
            zero_state=False,
            network=state.network,
            previous=state.digest,
            has_blocks=False,
            runs=runs,
            undone=True,
        )
        append_commit(lake_dir, state, commit)
    return commit


def _goes(path: str, first_gone: int) -> bool:
    """Tell whether a file goes: it has blocks that do, or what was unfinished after them."""
    return is_open(path) or read_place(path).last >= first_gone


def _spans(path: str, last_kept: int) -> bool:
    """Tell whether a file has blocks on both sides of the border."""
    place = read_place(path)
    return not place.is_open and place.first <= last_kept < place.last


def _check_border(state: LogState, last_kept: int, most_mc_blocks: int) -> str:
    """Return the day of the last block that stays.

    Raises:
        UndoRefused: too many blocks would go, or all.
    """
    newest = state.ranges[-1][1]
    kept = [place for place in list_places(state) if place.first <= last_kept]
    if not kept:
        raise UndoRefused(
            f"the chain differs from the lake after masterchain block {last_kept}, and the lake"
            " begins after that: ingest into a new lake"
        )
    if newest - last_kept > most_mc_blocks:
        raise UndoRefused(
            f"the chain differs from the lake after masterchain block {last_kept}: to undo all up"
            f" to {newest}, set [follow] undo_mc_blocks to {newest - last_kept} or more (it is"
            f" {most_mc_blocks}); if the node is the wrong one, name another"
        )
    return kept[-1].day

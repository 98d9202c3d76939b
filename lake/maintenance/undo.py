"""Blocks that are no part of the chain any more, taken out of the lake by a commit of its own.

Every row of a lake belongs to one masterchain block: a file with blocks on both sides of the border
is written again without those that go, as a commit that ended at the border would have written it.
Earlier snapshots stay readable for the grace time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.commit.commit import append_commit
from tonlake.lake.errors import UndoRefused
from tonlake.lake.file.datafile import remove_files, write_changes
from tonlake.lake.file.rows import read_rows, stream_rows
from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.disk import LOCK_FILE, begin_grace, hold_lock, sync_folders
from tonlake.lake.log.place import Derivation, is_open, list_places, read_place
from tonlake.lake.log.state import Commit, read_state
from tonlake.lake.maintenance.compact import write_stream
from tonlake.lake.schema import TABLES, TRACES
from tonlake.lake.schema.action import ACTION_RANGES, ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tonlake.lake.log.place import NewFile
    from tonlake.lake.log.state import DataFile, LogState
    from tonlake.lake.settings import LakeSettings


_MC_SEQNO = {TRACES.name: "mc_seqno_end"}
"""Column of a row's masterchain block, where it is not ``mc_seqno``."""


def cut_files(
    lake_dir: Path, files: Sequence[DataFile], last_kept: int, settings: LakeSettings
) -> list[DataFile]:
    """Write the files of one place again without rows of blocks after ``last_kept``.

    They stand at the place that ends there. A file of which no row stays has no successor.

    Raises:
        LakeCorrupt: a file is missing or damaged.
        LakeFull: no room.
    """
    made: list[DataFile] = []
    for file in files:
        if file.table == ACTION_RANGES.name:
            pieces = iter([_cut_ranges(lake_dir, file, files, last_kept)])
        else:
            pieces = _keep_before(lake_dir, file, last_kept, settings)
        place = read_place(file.path)._replace(last=last_kept)
        written = write_stream(lake_dir, TABLES[file.table], place, pieces, file.rows, settings)
        if written.rows:
            made.append(written)
        else:
            (lake_dir / written.path).unlink()
    sync_folders((lake_dir / file.path).parent for file in made)
    return made


def _keep_before(
    lake_dir: Path, file: DataFile, last_kept: int, settings: LakeSettings
) -> Iterator[pa.Table]:
    column = _MC_SEQNO.get(file.table, "mc_seqno")
    for rows in stream_rows(lake_dir, file, settings.row_group_rows):
        yield rows.filter(pc.less_equal(rows[column], last_kept))


def _cut_ranges(
    lake_dir: Path, file: DataFile, files: Sequence[DataFile], last_kept: int
) -> pa.Table:
    """Return what is classified: of a range that spans the border, as much as stays."""
    found: list[dict[str, Any]] = []
    for row in read_rows(lake_dir, file).to_pylist():
        if row["last_mc_seqno"] > last_kept >= row["first_mc_seqno"]:
            span = (row["first_mc_seqno"], last_kept)
            row |= {
                "last_mc_seqno": last_kept,
                "traces": _count(lake_dir, files, TRACES.name, span),
                "actions": _count(lake_dir, files, ACTIONS.name, span),
            }
        if row["last_mc_seqno"] <= last_kept:
            found.append(row)
    return pa.Table.from_pylist(found, schema=ACTION_RANGES.arrow)


def _count(lake_dir: Path, files: Sequence[DataFile], table: str, span: tuple[int, int]) -> int:
    """Return how many rows of a table lie in a span of masterchain blocks."""
    column = _MC_SEQNO.get(table, "mc_seqno")
    inside = (pc.field(column) >= span[0]) & (pc.field(column) <= span[1])
    return sum(
        read_rows(lake_dir, file, (column,), inside).num_rows
        for file in files
        if file.table == table
    )


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

    ``source`` is a fingerprint of the node, and ``reopen`` makes the files of derived rows that
    become unfinished again.

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
        gone = {
            file.path
            for file in state.files
            if is_open(file.path) or read_place(file.path).last >= first_gone
        }
        reopened = Derivation(reopen(state, first_gone), frozenset(gone))
        spanning = [file for file in state.files if _spans(file.path, last_kept)]
        with ExitStack() as undo:
            cut = cut_files(lake_dir, spanning, last_kept, settings)
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
    return commit


def _spans(path: str, last_kept: int) -> bool:
    """Whether a file has blocks on both sides of the border."""
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

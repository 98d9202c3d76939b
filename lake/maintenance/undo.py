"""Removes blocks of an abandoned fork from the lake in a separate commit.

Every row belongs to one masterchain block: a file with blocks on both sides of the border is
rewritten without those that go, as a commit that ended at the border would have written it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.commit.commit import append_commit
from tonlake.lake.commit.delta import publish
from tonlake.lake.errors import UndoRefused
from tonlake.lake.file.datafile import remove_files, write_changes
from tonlake.lake.file.rows import read_rows, stream_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.index.builder.plan import range_of
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, sync_folders
from tonlake.lake.log.place import Derivation, NewFile, is_open, list_places, read_place
from tonlake.lake.log.ranges import Range
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState, read_state
from tonlake.lake.maintenance.compact import write_stream
from tonlake.lake.schema import ACCOUNT_STATES, ACTION_RANGES, ACTIONS, INTERFACES, TABLES, TRACES
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

    ``source`` is a fingerprint of the node; ``reopen`` derives files of rows unfinished again.

    Raises:
        UndoRefused: more than ``max_mc_blocks`` would go, or all; LakeCorrupt; LakeFull.
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
        places = ((file, read_place(file.path)) for file in state.files)
        spanning = [file for file, place in places if place.first <= last_kept < place.last]
        with ExitStack() as undo:
            cut: list[DataFile] = []
            undo.callback(remove_files, lake_dir, cut)
            cut_files(lake_dir, spanning, (0, last_kept), settings, cut)
            changes = write_changes(lake_dir, state, reopened, settings)
            undo.pop_all()
        segments = tuple(segment for segment in state.segments if range_of(segment)[1] <= last_kept)
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


def _check_border(state: LogState, last_kept: int, max_mc_blocks: int) -> str:
    """Return the day of the last block that stays."""
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


def cut_files(
    lake_dir: Path,
    files: Sequence[DataFile],
    kept: Range,
    settings: LakeSettings,
    made: list[DataFile],
) -> None:
    """Rewrite the files of one place with the rows of the blocks ``kept``; list them in ``made``.

    A file without such rows has no successor. ``kept`` may begin with block 0, the zero state.
    """
    for file in files:
        made.append(_cut_file(lake_dir, file, files, kept, settings))
        if not made[-1].rows:
            remove_files(lake_dir, [made.pop()])
    sync_folders((lake_dir / file.path).parent for file in made)


def _cut_file(
    lake_dir: Path, file: DataFile, files: Sequence[DataFile], kept: Range, settings: LakeSettings
) -> DataFile:
    if file.table == ACTION_RANGES.name:
        pieces = iter([_cut_ranges(lake_dir, file, files, kept)])
    elif file.table == INTERFACES.name:
        pieces = iter([_cut_interfaces(lake_dir, file, files, kept)])
    else:
        stays = _is_within(file.table, kept)
        rows = stream_rows(lake_dir, file, settings.row_group_rows)
        pieces = (piece.filter(stays) for piece in rows)
    old = read_place(file.path)
    place = old._replace(first=max(old.first, kept[0]), last=min(old.last, kept[1]))
    return write_stream(lake_dir, TABLES[file.table], place, pieces, file.rows, settings)


def _is_within(table: str, span: Range) -> pc.Expression:
    """Return the predicate: the row is of a range of masterchain blocks."""
    seqno = pc.field(TABLES[table].height)
    return (seqno >= span[0]) & (seqno <= span[1])


def _cut_ranges(lake_dir: Path, file: DataFile, files: Sequence[DataFile], kept: Range) -> pa.Table:
    """Return the rows of ``action_ranges``; a range that spans the border is shortened."""
    found: list[dict[str, Any]] = []
    for row in read_rows(lake_dir, file).to_pylist():
        old = row["first_mc_seqno"], row["last_mc_seqno"]
        span = max(old[0], kept[0]), min(old[1], kept[1])
        if span[0] > span[1]:
            continue
        if span != old:
            row |= {
                "first_mc_seqno": span[0],
                "last_mc_seqno": span[1],
                "traces": _count(lake_dir, files, TRACES.name, span),
                "actions": _count(lake_dir, files, ACTIONS.name, span),
            }
        found.append(row)
    return pa.Table.from_pylist(found, schema=ACTION_RANGES.arrow)


def _count(lake_dir: Path, files: Sequence[DataFile], table: str, span: Range) -> int:
    """Return the number of rows of a table in a range of masterchain blocks."""
    inside, columns = _is_within(table, span), (TABLES[table].height,)
    return sum(
        read_rows(lake_dir, file, columns, inside).num_rows for file in files if file.table == table
    )


def _cut_interfaces(
    lake_dir: Path, file: DataFile, files: Sequence[DataFile], kept: Range
) -> pa.Table:
    """Return the codes of the remaining account states, each with its first block among them."""
    columns = ("code_hash", "mc_seqno")
    inside = _is_within(ACCOUNT_STATES.name, kept)
    of_states = (each for each in files if each.table == ACCOUNT_STATES.name)
    states = [read_rows(lake_dir, each, columns, inside) for each in of_states]
    states = pa.concat_tables([ACCOUNT_STATES.empty.select(columns), *states])
    rows = read_rows(lake_dir, file)
    first = states.group_by("code_hash").aggregate([("mc_seqno", "min")])
    at = pc.index_in(first["code_hash"], value_set=rows["code_hash"].combine_chunks())
    is_known = pc.is_valid(at)
    found = rows.take(at.filter(is_known))
    begun = first["mc_seqno_min"].filter(is_known)
    column = INTERFACES.names.index("mc_seqno")
    return sort_rows(found.set_column(column, found.schema.field(column), begun), INTERFACES)

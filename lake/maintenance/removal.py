"""Removes blocks from the lake in a separate commit: those of an abandoned fork, or old ones.

Every row belongs to one masterchain block: a file with blocks on both sides of the border is
rewritten without those that go, as a commit that ended or began there would have written it.

A pruned lake begins at a later block. Rows that later blocks build on stay
(``lake.maintenance.kept``). Files and index segments are written without the lock, and committed
if the lake still has all of their inputs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.commit.commit import ATTEMPTS, append_commit, give_up
from tonlake.lake.commit.delta import publish
from tonlake.lake.errors import PruneRefused, UndoRefused
from tonlake.lake.file.datafile import remove_files, write_changes
from tonlake.lake.file.rows import read_rows, stream_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.index.builder.plan import is_current, range_of
from tonlake.lake.index.builder.rebuild import make_segments
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, reach, sync_folders
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
    Place,
    find_newest_day,
    is_open,
    list_places,
    read_place,
)
from tonlake.lake.log.ranges import Range, merge_ranges, overlaps
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState, read_state
from tonlake.lake.maintenance.compact import remove_unless_live, write_stream
from tonlake.lake.maintenance.kept import RetainedRows, drop_dead_traces
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


class Plan(NamedTuple):
    """A plan to prune a state: the first block that stays, and the ranges that go."""

    state: LogState
    border: int
    gone: tuple[Range, ...]

    @property
    def old(self) -> list[DataFile]:
        """The files with rows of pruned blocks, including a baseline and rows kept before."""
        return [
            file
            for file in self.state.files
            if not is_open(file.path) and read_place(file.path).first < self.border
        ]

    @property
    def segments(self) -> list[DataFile]:
        """The index segments that go."""
        return [each for each in self.state.segments if range_of(each)[0] < self.border]

    @property
    def pruned(self) -> tuple[Range, ...]:
        """All pruned ranges after this prune."""
        return merge_ranges((*self.state.pruned_ranges, *self.gone))

    @property
    def place(self) -> Place:
        """The place of the kept rows."""
        last = self.pruned[-1][1]
        day = max(place.day for place in list_places(self.state) if place.first <= last)
        return Place(self.pruned[0][0], last, day)


def plan_prune(state: LogState, before: int | str) -> Plan:
    """Plan to prune the blocks before a masterchain seqno or a UTC day."""
    if isinstance(before, str):
        starts = [
            place.first
            for place in list_places(state)
            if place.first > state.last_pruned and place.day >= before
        ]
        newest = find_newest_day(state)
    else:
        starts = [max(first, before) for first, last in state.ranges if last >= before]
        newest = f"masterchain block {state.ranges[-1][1]}"
    if not starts:
        raise PruneRefused(
            f"no block would be left: the lake ends with {newest}; choose a border up to there"
        )
    border = min(starts)
    gone = tuple((first, min(last, border - 1)) for first, last in state.ranges if first < border)
    return Plan(state, border, gone)


class PruneReport(msgspec.Struct, frozen=True):
    """Blocks pruned, files and bytes before and after; a dry run counts no file after."""

    before: int
    ranges: tuple[Range, ...] = ()
    commit: int | None = None
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    @property
    def bytes_freed(self) -> int:
        """Bytes freed once the old files are swept; 0 if what is kept takes more than before."""
        return max(0, self.bytes_before - self.bytes_after)


def prune_lake(
    lake_dir: Path,
    before: int | str,
    settings: LakeSettings,
    *,
    dry_run: bool = False,
    on_table: Callable[[int, int], None] = lambda _done, _all: None,
) -> PruneReport:
    """Prune the blocks before a masterchain seqno or a UTC day (``YYYY-MM-DD``)."""
    log = LogReader(lake_dir)
    for _attempt in range(ATTEMPTS):
        plan = plan_prune(log.find(), before)
        if not plan.gone or dry_run:
            return _report(plan, None)
        with Lease(lake_dir, plan.state.number), ExitStack() as undo:
            made: list[DataFile] = []
            undo.callback(remove_unless_live, lake_dir, made)
            _write_files(lake_dir, plan, settings, on_table, made)
            added = made[:]
            if settings.build_index:
                pruned = plan.state.add((_describe(plan, plan.state, added), ""))
                made += make_segments(lake_dir, pruned)
                reach("prune.indexed")
            commit = _commit(lake_dir, log, plan, added, made[len(added) :], settings)
            if commit is not None:
                undo.pop_all()
                publish(log, settings)
                return _report(plan, commit)
    raise give_up(lake_dir)


def prune_old_days(log: LogReader, settings: LakeSettings) -> None:
    """Prune the days before the newest ``keep_days``, counted from the lake's newest block."""
    if settings.keep_days:
        newest = date.fromisoformat(find_newest_day(log.find()))
        first = newest - timedelta(days=settings.keep_days - 1)
        prune_lake(log.lake_dir, first.isoformat(), settings)


def _report(plan: Plan, commit: Commit | None) -> PruneReport:
    before = [*plan.old, *plan.segments] if plan.gone else []
    after: list[DataFile] = []
    if commit is not None:
        live = {file.path for file in before} - {*commit.removed}
        known = {each.path for each in plan.state.segments}
        after = [*commit.added, *(file for file in plan.old if file.path in live)]
        after += [each for each in commit.segments or () if each.path not in known]
    return PruneReport(
        before=plan.border,
        ranges=plan.gone,
        commit=None if commit is None else commit.number,
        files_before=len(before),
        files_after=len(after),
        bytes_before=sum(file.bytes for file in before),
        bytes_after=sum(file.bytes for file in after),
    )


def _write_files(
    lake_dir: Path,
    plan: Plan,
    settings: LakeSettings,
    on_table: Callable[[int, int], None],
    made: list[DataFile],
) -> None:
    """Write the remaining blocks of the place that spans the border, and the kept rows."""
    spanning = [file for file in plan.old if read_place(file.path).last >= plan.border]
    cut_files(lake_dir, spanning, (plan.border, plan.state.ranges[-1][1]), settings, made)
    RetainedRows(lake_dir, plan.state, plan.border, plan.place, settings, made).write(on_table)
    reach("prune.written")


def _commit(
    lake_dir: Path,
    log: LogReader,
    plan: Plan,
    added: list[DataFile],
    made: list[DataFile],
    settings: LakeSettings,
) -> Commit | None:
    """Commit the files; None if the lake has changed at their places."""
    with hold_lock(lake_dir / LOCK_FILE):
        now = log.find()
        is_same = (now.undoings, now.pruned) == (plan.state.undoings, plan.state.pruned)
        is_same = is_same and set(plan._replace(state=now).old) == set(plan.old)
        if not is_same or not all((lake_dir / file.path).exists() for file in (*added, *made)):
            return None
        files, replaced = drop_dead_traces(lake_dir, now, plan.border)
        opened = write_changes(lake_dir, now, Derivation(files, replaced), settings)
        commit = _describe(plan, now, [*added, *opened.added], opened.removed)
        segments = _choose_segments(now, commit, made)
        commit = msgspec.structs.replace(commit, segments=segments)
        append_commit(lake_dir, now, commit)
        return commit


def _describe(
    plan: Plan, state: LogState, written: Sequence[DataFile], removed: Sequence[str] = ()
) -> Commit:
    """Return the commit that prunes a state; a file rewritten to the same bytes is no change."""
    live = {file.path for file in plan.old}
    paths = {file.path for file in written}
    return Commit(
        number=state.number + 1,
        first_mc_seqno=plan.gone[0][0],
        last_mc_seqno=plan.gone[-1][1],
        day=find_newest_day(state),
        added=tuple(file for file in written if file.path not in live),
        removed=tuple(sorted({*removed, *live} - paths)),
        network=state.network,
        previous=state.digest,
        has_blocks=False,
        segments=tuple(each for each in state.segments if range_of(each)[0] >= plan.border),
        pruned=plan.pruned,
    )


def _choose_segments(
    state: LogState, commit: Commit, made: Sequence[DataFile]
) -> tuple[DataFile, ...]:
    """Return the segments of other blocks, and those written whose files are still current."""
    after = state.add((commit, ""))
    fresh = [each for each in made if is_current(after, each)]
    ranges = tuple(map(range_of, fresh))
    return (*(each for each in after.segments if not overlaps(ranges, range_of(each))), *fresh)

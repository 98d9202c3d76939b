"""Prunes old blocks from a lake in a separate commit: it then begins at a later block.

Rows that later blocks build on stay (``lake.maintenance.kept``). Files and index segments are
written without the lock, and committed if the lake still has all of their inputs.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from tonlake.lake.commit.commit import ATTEMPTS, append_commit, give_up
from tonlake.lake.commit.delta import publish
from tonlake.lake.errors import PruneRefused
from tonlake.lake.file.datafile import write_changes
from tonlake.lake.index.builder.plan import is_current, range_of
from tonlake.lake.index.builder.rebuild import make_segments
from tonlake.lake.log.disk import LOCK_FILE, hold_lock, reach
from tonlake.lake.log.place import (
    Derivation,
    Place,
    find_newest_day,
    is_open,
    list_places,
    read_place,
)
from tonlake.lake.log.ranges import Range, merge_ranges, overlaps
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState
from tonlake.lake.maintenance.compact import remove_unless_live
from tonlake.lake.maintenance.kept import RetainedRows, drop_dead_traces
from tonlake.lake.maintenance.undo import cut_files
from tonlake.lake.settings import LakeSettings


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

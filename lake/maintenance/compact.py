"""Merges small files: the files of consecutive commits become those of a single commit.

A merge covers a range of masterchain blocks in all tables, so every place still has one file per
table. Only rows that repeat across commits, such as state cells, become fewer. Files are merged
without the lock, and committed if the lake still has all of them; otherwise, that is planned again.
The replaced files stay for the grace period, for active readers.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, groupby
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.lake.commit.delta import publish
from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.errors import CommitConflict
from tonlake.lake.file.datafile import list_unlisted, remove_files
from tonlake.lake.file.rows import stream_rows
from tonlake.lake.file.writer import merge_rows, write_parquet
from tonlake.lake.index.builder.plan import digest_derived, list_within, range_of
from tonlake.lake.index.index import KeptRows
from tonlake.lake.log.disk import (
    LOCK_FILE,
    hold_lock,
    make_folder,
    open_temporary,
    reach,
    seal_file,
    sync_folders,
)
from tonlake.lake.log.place import Place, is_open, path_at, read_place
from tonlake.lake.log.ranges import overlaps, subtract_ranges
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import Commit, DataFile, LogReader, LogState, find_paths, read_state
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES, SCHEMA_VERSION, TABLES, Table
from tonlake.lake.settings import LakeSettings

_DISTINGUISHING = frozenset({"blocks", "action_ranges"})
"""Tables whose presence describes a place: places that differ in them are not merged."""


Depth = Literal["all", "tail", "packs"]


class Merge(NamedTuple):
    """Files to merge, and the place of the result."""

    place: Place
    files: tuple[DataFile, ...]


class _Unit(NamedTuple):
    """The files at one place, and their number of rows by table."""

    place: Place
    files: tuple[DataFile, ...]
    rows: Counter[str]
    is_bare: bool
    """Whether some of the blocks have no index segment."""

    @property
    def is_packed(self) -> bool:
        """Whether some of the files are in a pack."""
        return any(file.pack for file in self.files)

    @property
    def max_rows(self) -> int:
        return max(self.rows.values(), default=0)


def plan_merges(
    state: LogState, settings: LakeSettings, depth: Depth, last: float = math.inf
) -> list[Merge]:
    """Return all merges, in order, of masterchain blocks up to ``last`` where they are in packs."""
    found: list[Merge] = []
    queues = _list_queues(state, last)
    newest = max((queue[-1].place.day for queue in queues), default="")
    for queue in queues:
        unpacked = _unpack(queue, settings, waits=depth == "tail" and settings.build_index)
        if depth == "packs":
            found += unpacked
        elif depth == "all" or queue[-1].place.day != newest:
            found += _pack(queue, settings.compact_rows)
        else:
            found += unpacked or _pack_small(queue, settings)
    if not state.ranges or state.ranges[-1][1] <= last:
        packed = (file for file in state.files if file.pack and is_open(file.path))
        found += (Merge(read_place(file.path), (file,)) for file in packed)
    return found


def _list_queues(state: LogState, last: float) -> list[list[_Unit]]:
    """Return all places, grouped into lists whose members may be merged."""
    by_place: dict[Place, list[DataFile]] = {}
    for files in state.by_place.values():
        place = read_place(files[0].path)
        ready = [file for file in files if not file.pack or place.last <= last]
        # The place of kept rows, the only one before a pruned lake's border, is never merged.
        if ready and not place.is_open and place.last > state.last_pruned:
            by_place[place] = ready
    bare = subtract_ranges(state.known_ranges, map(range_of, state.segments))
    queues: list[list[_Unit]] = []
    before: tuple[Place, bool, frozenset[str]] | None = None
    are_decoded: bool | None = None
    for place in sorted(by_place):
        is_bare = any(first <= place.last and place.first <= last for first, last in bare)
        rows = Counter[str]()
        for file in by_place[place]:
            if file.table not in _ONCE:  # a merged file may have fewer rows
                rows[file.table] += file.rows
        unit = _Unit(place, tuple(by_place[place]), rows, is_bare)
        known = _DISTINGUISHING.intersection(rows)
        # Places with and without bodies are not merged: ``rebuild bodies`` looks for the latter.
        mine = MESSAGE_BODIES.name in rows if MESSAGES.name in rows else None
        is_next = before == (place._replace(first=0, last=place.first - 1), is_bare, known)
        if is_next and (mine == are_decoded or None in {mine, are_decoded}):
            queues[-1].append(unit)
            are_decoded = are_decoded if mine is None else mine
        else:
            queues.append([unit])
            are_decoded = mine
        before = (place._replace(first=0), is_bare, known)
    return queues


def _pack(units: Iterable[_Unit], max_rows: int) -> Iterator[Merge]:
    """Yield maximal runs of consecutive places that fit; single places without packs are not."""
    held: list[_Unit] = []
    total = Counter[str]()
    for unit in units:
        if held and max((total + unit.rows).values(), default=0) > max_rows:
            yield from _join(held)
            held, total = [], Counter()
        held.append(unit)
        total += unit.rows
    yield from _join(held)


def _join(units: list[_Unit]) -> Iterator[Merge]:
    if len(units) > 1 or (units and units[0].is_packed):
        place = units[0].place._replace(last=units[-1].place.last)
        yield Merge(place, tuple(file for unit in units for file in unit.files))


def _unpack(units: list[_Unit], settings: LakeSettings, *, waits: bool) -> list[Merge]:
    """Return merges of the packs; those without an index segment may have to wait for it."""
    found: list[Merge] = []
    for is_due, group in groupby(
        units, key=lambda unit: unit.is_packed and not (unit.is_bare and waits)
    ):
        found += _pack(group, settings.compact_rows) if is_due else ()
    return found


def _pack_small(units: list[_Unit], settings: LakeSettings) -> list[Merge]:
    """Return places to merge: adjacent ones, of a size between powers of ``compact_commits``."""
    fan_in = settings.compact_commits
    if fan_in < 2:  # noqa: PLR2004 - a single place needs no merge
        return []
    sizes = [settings.compact_rows // fan_in]
    while sizes[-1] >= fan_in:
        sizes.append(sizes[-1] // fan_in)
    for size in reversed(sizes):
        found: list[Merge] = []
        for is_small, group in groupby(units, key=lambda unit: unit.max_rows <= size):
            together = list(group)
            # The result must be too large for this step, or its rows would be merged in it twice.
            total = sum(unit.max_rows for unit in together)
            if is_small and len(together) >= fan_in and total > size:
                found += _pack(together, settings.compact_rows)
        if found:
            return found
    return []


MEMORY_ROWS = 200_000
"""Rows of one table held in memory while files are merged."""

_ONCE = {"state_cells": "hash"}
"""Tables whose view shows a row once although several commits have it, and the key that identifies
it: a merge keeps the first."""


class CompactReport(msgspec.Struct):
    """What was merged: commits, files and bytes before and after, and rows of the new files."""

    commits: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0


def compact_lake(
    lake_dir: Path,
    settings: LakeSettings,
    *,
    depth: Depth = "all",
    on_files: Callable[[int, int], None] = lambda _done, _all: None,
    log: LogReader | None = None,
    kept: KeptRows | None = None,
) -> CompactReport:
    """Merge small files until nothing is left to merge; readers and writers continue meanwhile.

    With ``depth`` ``tail``, merge few rows of many commits, so that each row is written only a few
    times in total; with ``packs``, only what is in packs, which tools that read Parquet do not see.
    ``on_files`` is called with the number of files merged so far and of all.
    """
    report, log = CompactReport(), log or LogReader(lake_dir)
    last = max((end for _first, end in log.find().ranges), default=0)  # what comes later waits
    while merges := plan_merges(state := log.find(), settings, depth, last):
        lease = Lease(lake_dir, state.number)
        todo = report.files_before + sum(len(merge.files) for merge in merges)
        for merge in merges:
            added = _write_merge(lake_dir, merge, settings, kept)
            if _commit_merge(lake_dir, log, merge, added) is None:
                break
            report.commits += 1
            report.files_before += len(merge.files)
            report.files_after += len(added)
            report.bytes_before += sum(file.bytes for file in merge.files)
            report.bytes_after += sum(file.bytes for file in added)
            report.rows += sum(file.rows for file in added)
            on_files(report.files_before, todo)
        lease.close()
    publish(log, settings)
    return report


def _write_merge(
    lake_dir: Path, merge: Merge, settings: LakeSettings, kept: KeptRows | None
) -> list[DataFile]:
    """Write the files of a merge, one per table."""
    added: list[DataFile] = []
    try:
        for name in sorted({file.table for file in merge.files}):
            files = [file for file in merge.files if file.table == name]
            added.append(_merge_files(lake_dir, merge, files, settings, kept))
    except BaseException:
        remove_unless_live(lake_dir, added)
        raise
    reach("compact.renamed")
    sync_folders((lake_dir / file.path).parent for file in added)
    reach("compact.folders_synced")
    return added


def _merge_files(
    lake_dir: Path,
    merge: Merge,
    files: list[DataFile],
    settings: LakeSettings,
    kept: KeptRows | None,
) -> DataFile:
    table = TABLES[files[0].table]

    def read(file: DataFile) -> Iterable[pa.Table]:
        if kept is not None and file.pack:
            return (kept.take(lake_dir, file),)
        rows = None if kept is None else kept.pop(lake_dir, file)
        return stream_rows(lake_dir, file, settings.row_group_rows) if rows is None else (rows,)

    pieces = chain.from_iterable(map(read, sorted(files, key=lambda file: read_place(file.path))))
    folder = make_table_folder(lake_dir, table, merge.place)
    merged = merge_rows(pieces, table, MEMORY_ROWS, folder)
    if table.name in _ONCE:
        merged = keep_first(merged, _ONCE[table.name])
    max_rows = sum(file.rows for file in files)
    return write_stream(lake_dir, table, merge.place, merged, max_rows, settings)


def make_table_folder(lake_dir: Path, table: Table, place: Place) -> Path:
    """Create and return the folder of a table's file at a place."""
    folder = lake_dir / table.name / f"day={place.day}"
    make_folder(folder)
    return folder


def write_stream(
    lake_dir: Path,
    table: Table,
    place: Place,
    pieces: Iterable[pa.Table],
    max_rows: int,
    settings: LakeSettings,
) -> DataFile:
    """Write sorted rows in batches, durably, as the file at a place."""
    folder = make_table_folder(lake_dir, table, place)
    with open_temporary(folder, "merge") as (stream, temporary):
        rows = write_parquet(stream, pieces, table, settings, max_rows)
        sha256 = seal_file(stream, "merge")
        path = path_at(table.name, place, sha256)
        size = temporary.stat().st_size
        temporary.replace(lake_dir / path)
    reach("merge.renamed")
    return DataFile(path, table.name, rows, size, sha256, SCHEMA_VERSION)


def keep_first(pieces: Iterable[pa.Table], name: str) -> Iterator[pa.Table]:
    """Yield sorted rows without those that repeat the previous row's value in column ``name``."""
    for rows, is_first, _is_last in mark_ends(pieces, (name,)):
        yield rows.filter(is_first)


def mark_ends(
    pieces: Iterable[pa.Table], key: Sequence[str]
) -> Iterator[tuple[pa.Table, pa.Array, pa.Array]]:
    """Yield sorted rows, each with whether it is the first and the last of its key."""
    held, is_first = None, pa.array([True])
    for piece in pieces:
        # Hold back the last row until its successor is known.
        rows = piece if held is None else pa.concat_tables([held, piece])
        rows = rows.combine_chunks()
        count = rows.num_rows - 1
        head, held = rows.slice(0, count), rows.slice(count)
        differs = (pc.not_equal(head[name], rows[name].slice(1)) for name in key)
        is_last = reduce(pc.or_, differs).combine_chunks()
        begins = pa.concat_arrays([is_first, is_last])
        yield head, begins.slice(0, count), is_last
        is_first = begins.slice(count)
    if held is not None:
        yield held, is_first, pa.array([True])


def _commit_merge(
    lake_dir: Path, log: LogReader, merge: Merge, added: list[DataFile]
) -> Commit | None:
    """Commit merged files; None if the lake has changed at their places."""
    with hold_lock(lake_dir / LOCK_FILE):
        state = log.find()
        removed = {file.path for file in merge.files}
        is_there = find_paths(state.by_place, removed) == removed
        if not is_there or not all((lake_dir / file.path).exists() for file in added):
            remove_files(lake_dir, list_unlisted(added, state))
            return None
        try:
            return commit_maintenance(
                lake_dir,
                state,
                added=added,
                removed=removed,
                segments=_carry_segments(state, merge, added),
            )
        except CommitConflict:
            return None


def _carry_segments(
    state: LogState, merge: Merge, added: list[DataFile]
) -> tuple[DataFile, ...] | None:
    """Return the index segments, with the digests of derived files updated for the new files."""
    carried = []
    for segment in state.segments:
        mc_range, traces = range_of(segment), segment.traces
        if overlaps((mc_range,), (merge.place.first, merge.place.last)):
            before = list_within(state, mc_range)
            if traces == digest_derived(before):
                traces = digest_derived([*set(before).difference(merge.files), *added])
        carried.append(msgspec.structs.replace(segment, traces=traces))
    return None if tuple(carried) == state.segments else tuple(carried)


def remove_unless_live(lake_dir: Path, files: Iterable[DataFile]) -> None:
    """Remove files and index segments that were written for a commit that failed."""
    with hold_lock(lake_dir / LOCK_FILE):
        remove_files(lake_dir, list_unlisted(files, read_state(lake_dir)))

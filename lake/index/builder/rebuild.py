"""Segments on disk: made from the data files, and committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.index.builder.compose import compose
from tonlake.lake.index.builder.gather import Source
from tonlake.lake.index.builder.place import (
    SEGMENT_FORMAT,
    count_rows,
    digest_derived,
    files_within,
    is_readable,
    list_within,
    range_of,
    segment_path,
)
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.log.crash import reach
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import (
    LOCK_FILE,
    begin_grace,
    hold_lock,
    make_folder,
    open_temporary,
    seal_file,
    sync_folder,
)
from tonlake.lake.log.ranges import overlaps, subtract_ranges
from tonlake.lake.log.reader import LogReader
from tonlake.lake.log.state import SEGMENT_FOLDER, DataFile

if TYPE_CHECKING:
    from pathlib import Path

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import Commit, LogState

BLOCK_ROWS = 50_000
"""Transactions held in memory while a segment is built."""

_GROWTH = 4
"""A segment is made together with the one before it, unless that has this many times its rows."""


def rebuild_index(
    lake_dir: Path, *, everything: bool = False, log: LogReader | None = None
) -> Commit | None:
    """Build and commit the segments that are missing, damaged or of another format.

    None if none are, if blocks were undone meanwhile, and without the extension. Readers and
    writers go on: the lock is held for the commit alone. ``everything`` rebuilds all segments.
    ``log`` is that of the lake, read on where the caller knows it already.

    Raises:
        LakeNotFound: the folder holds no lake.
        LakeCorrupt: a data file is damaged.
        LakeFull: no room; nothing was committed.
    """
    if NATIVE is None:
        return None
    log = log or LogReader(lake_dir)
    state = log.find()
    made, kept = make_segments(lake_dir, state, everything=everything)
    if not made and kept == state.segments:
        return None
    with hold_lock(lake_dir / LOCK_FILE):
        now = log.find()
        if (now.undoings, now.pruned) != (state.undoings, state.pruned):
            # Some of the blocks may be others by now, or gone; the next rebuild makes segments.
            return None
        # Another rebuild may have ended meanwhile; what overlaps ours gives way to it.
        ranges = tuple(map(range_of, made))
        others = [segment for segment in now.segments if not overlaps(ranges, range_of(segment))]
        begin_grace(lake_dir, (segment.path for segment in made))
        return commit_maintenance(lake_dir, now, segments=(*others, *made))


def make_segments(
    lake_dir: Path, state: LogState, *, everything: bool = False
) -> tuple[list[DataFile], tuple[DataFile, ...]]:
    """Write the segments that a state lacks, and return them and those of the state that stay.

    Without the extension there are none. Errors as ``rebuild_index``.
    """
    if NATIVE is None:
        return [], ()
    planned, kept = _plan(state, () if everything else _usable_segments(lake_dir, state))
    if not planned:
        return [], kept
    make_folder(lake_dir / SEGMENT_FOLDER)
    made = [_make_segment(lake_dir, state, mc_range) for mc_range in planned]
    sync_folder(lake_dir / SEGMENT_FOLDER)
    return made, kept


def _usable_segments(lake_dir: Path, state: LogState) -> tuple[DataFile, ...]:
    """Return the segments that are sound, of this format, and right about traces and contracts."""
    damaged = {error.file for error in find_damage(lake_dir, state.segments, trust_earlier=True)}
    return tuple(
        segment
        for segment in state.segments
        if is_readable(segment) and segment.path not in damaged and is_current(state, segment)
    )


def is_current(state: LogState, segment: DataFile) -> bool:
    """Whether a segment is right about the traces and contracts of a state."""
    mc_range = range_of(segment)
    return segment.traces == digest_derived(list_within(state, mc_range), mc_range)


def _meets(segment: DataFile, mc_range: Range) -> bool:
    first, last = range_of(segment)
    return first <= mc_range[1] and mc_range[0] <= last


def _plan(
    state: LogState, segments: tuple[DataFile, ...]
) -> tuple[list[Range], tuple[DataFile, ...]]:
    """Return the ranges to make, and the segments that stay.

    A segment never spans a hole. Segments beside a new range are rebuilt with it unless they are
    much larger, so that few remain, and each row is written a few times at most.
    """
    kept = segments
    planned = []
    for first, last in subtract_ranges(state.known_ranges, map(range_of, segments)):
        piece = (first, last)
        rows = 1 + count_rows(list_within(state, piece))
        while joined := [
            segment
            for segment in kept
            if _meets(segment, (piece[0] - 1, piece[1] + 1)) and segment.rows < rows * _GROWTH
        ]:
            ends = [end for segment in joined for end in range_of(segment)]
            piece = (min(piece[0], *ends), max(piece[1], *ends))
            rows += sum(segment.rows for segment in joined)
            kept = tuple(segment for segment in kept if segment not in joined)
        planned.append(piece)
    return planned, kept


def _make_segment(lake_dir: Path, state: LogState, mc_range: Range) -> DataFile:
    """Write one segment durably under its own name."""
    folder = lake_dir / SEGMENT_FOLDER
    source = Source(lake_dir, files_within(state.files, mc_range), mc_range)
    with open_temporary(folder, "segment") as (stream, temporary):
        rows = compose(stream, source, source.read_parts(BLOCK_ROWS, folder))
        sha256 = seal_file(stream, "segment")
        size = temporary.stat().st_size
        path = segment_path(mc_range, sha256)
        temporary.replace(lake_dir / path)
    reach("segment.renamed")
    derived = digest_derived(source.files, mc_range)
    return DataFile(path, SEGMENT_FOLDER, rows, size, sha256, SEGMENT_FORMAT, derived)

"""Builds segments from the data files, and commits them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tonlake.lake.commit.rewrite import commit_maintenance
from tonlake.lake.file.rows import read_rows
from tonlake.lake.index.builder.compose import Read, SegmentSource, compose
from tonlake.lake.index.builder.plan import (
    digest_derived,
    is_current,
    is_readable,
    list_within,
    plan_missing,
    range_of,
    segment_path,
)
from tonlake.lake.index.segment.file import SEGMENT_FORMAT
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.disk import (
    LOCK_FILE,
    hold_lock,
    make_folder,
    open_temporary,
    reach,
    seal_file,
    sync_folder,
)
from tonlake.lake.log.ranges import overlaps
from tonlake.lake.log.snapshot import Lease
from tonlake.lake.log.state import SEGMENT_FOLDER, Commit, DataFile, LogReader, LogState

SEGMENT_ROWS = 200_000
"""Default number of transactions at which a segment ends, with the commit that reaches it. All of
its rows are in memory while it is built; a key lookup takes about 1 µs per segment."""

Run = Callable[[Callable[[SegmentSource], DataFile], Iterable[SegmentSource]], Iterable[DataFile]]
"""Calls a function with the source of each of several segments, like ``map``."""


def rebuild_index(
    lake_dir: Path,
    *,
    max_rows: int = SEGMENT_ROWS,
    everything: bool = False,
    at_once: bool = True,
    run: Run = map,
    read: Read = read_rows,
    log: LogReader | None = None,
) -> Commit | None:
    """Build and commit the segments that are missing, damaged or of another format.

    Return None if there are none, or if blocks were undone meanwhile. Readers and writers continue:
    the lock is held only for the commit. A segment ends with the commit that reaches ``max_rows``
    transactions; ``run`` builds segments in this process or others, ``read`` reads rows of a file.
    Without ``at_once`` each is committed when it is built: the last commit is returned.

    Raises:
        LakeNotFound: there is no lake; LakeCorrupt: a file is damaged; LakeFull: no room.
    """
    log = log or LogReader(lake_dir)
    state = log.find()
    with Lease(lake_dir, state.number):
        made = make_segments(lake_dir, state, max_rows, everything=everything, run=run, read=read)
        parts = [[*made]] if at_once else ([each] for each in made)
        commits = [commit_segments(log, state, part) for part in filter(None, parts)]
    return commits[-1] if commits else None


def commit_segments(log: LogReader, state: LogState, made: Sequence[DataFile]) -> Commit | None:
    """Commit segments built from a state's files; None if blocks were undone since."""
    lake_dir = log.lake_dir
    with hold_lock(lake_dir / LOCK_FILE):
        now = log.find()
        if (now.undoings, now.pruned) != (state.undoings, state.pruned):
            # Some of the blocks may have changed or gone; the next rebuild creates segments.
            return None
        # Another rebuild may have ended meanwhile; its overlapping segments are replaced.
        ranges = tuple(map(range_of, made))
        others = [segment for segment in now.segments if not overlaps(ranges, range_of(segment))]
        return commit_maintenance(lake_dir, now, segments=(*others, *made))


def make_segments(
    lake_dir: Path,
    state: LogState,
    max_rows: int = SEGMENT_ROWS,
    *,
    everything: bool = False,
    run: Run = map,
    read: Read = read_rows,
) -> Iterable[DataFile]:
    """Return missing segments as ``rebuild_index``; each is written when it is taken."""
    usable = () if everything else _usable_segments(lake_dir, state)
    planned = plan_missing(state, usable, max_rows)
    orders = [SegmentSource(lake_dir, list_within(state, each), each, read) for each in planned]
    return run(build_segment, orders)


def _usable_segments(lake_dir: Path, state: LogState) -> tuple[DataFile, ...]:
    """Return the segments that are sound, of this format, and current for a state."""
    damaged = {error.file for error in find_damage(lake_dir, state.segments, trust_earlier=True)}
    return tuple(
        segment
        for segment in state.segments
        if is_readable(segment) and segment.path not in damaged and is_current(state, segment)
    )


def build_segment(source: SegmentSource) -> DataFile:
    """Write one segment durably, or raise LakeCorrupt or LakeFull; no commit lists it yet."""
    folder = source.lake_dir / SEGMENT_FOLDER
    make_folder(folder)
    with open_temporary(folder, "segment") as (stream, temporary):
        rows = compose(stream, source)
        sha256 = seal_file(stream, "segment")
        size = temporary.stat().st_size
        path = segment_path(source.mc_range, sha256)
        temporary.replace(source.lake_dir / path)
    reach("segment.renamed")
    sync_folder(folder)
    derived = digest_derived(source.files)
    return DataFile(path, SEGMENT_FOLDER, rows, size, sha256, SEGMENT_FORMAT, derived)

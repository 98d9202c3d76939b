"""Plans index segments: few of them, and none too large to build.

Segments end where commits do. The plan depends only on the lake and the settings.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tonlake.lake.index.builder.place import (
    count_rows,
    cut_range,
    files_within,
    list_within,
    range_of,
)
from tonlake.lake.log.ranges import subtract_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.state import DataFile, LogState

MIN_ROWS = 16_000
"""Minimum number of transactions of a segment built during an ingest, so that little is left to
index after the last commit, when no other work runs in parallel."""

_SHARE = 4
"""A segment also has at least the number of earlier transactions divided by this, while it fits the
writer's memory: so a short chain has few segments, and no row is written twice."""

_MAX_SEGMENTS = 32
"""A segment always has at least the number of earlier transactions divided by this, so the number
of segments grows with the logarithm of a long chain."""

_GROWTH = 4
"""A segment is merged with the previous one, unless that has this many times its rows."""


def plan_missing(
    state: LogState, segments: tuple[DataFile, ...], max_rows: int
) -> tuple[list[Range], tuple[DataFile, ...]]:
    """Return the ranges to build, given these sound segments, and the segments that stay.

    A segment never spans a hole. Segments next to a new range are rebuilt with it unless they are
    much larger, or would exceed ``max_rows`` together; so few remain, and each row is written only
    a few times.
    """
    kept = segments
    planned: list[Range] = []
    for first, last in subtract_ranges(state.known_ranges, map(range_of, segments)):
        piece = (first, last)
        rows = 1 + count_rows(list_within(state, piece))
        while neighbour := _find_neighbour(kept, piece, rows, max_rows):
            start, end = range_of(neighbour)
            piece = (min(piece[0], start), max(piece[1], end))
            rows += neighbour.rows
            kept = tuple(each for each in kept if each is not neighbour)
        full = [mc_range for mc_range, _ in _list_full(state, piece, lambda _done: max_rows)]
        planned += full + list(subtract_ranges([piece], full))
    return planned, kept


def list_due(
    state: LogState, ahead: Mapping[Range, int], max_rows: int, easy_rows: int
) -> dict[Range, int]:
    """Return the unindexed ranges large enough for a segment, with their transactions.

    ``ahead`` are the ranges whose segments are being built, with their transactions; the limits are
    those of ``choose_rows``.
    """
    before = sum(segment.rows for segment in state.segments) + sum(ahead.values())
    covered = [*map(range_of, state.segments), *ahead]
    due: dict[Range, int] = {}
    for piece in subtract_ranges(state.known_ranges, covered):
        target = partial(choose_rows, max_rows=max_rows, easy_rows=easy_rows, earlier=before)
        full = dict(_list_full(state, piece, target))
        before += sum(full.values())
        due |= full
    return due


def choose_rows(before: int, max_rows: int, easy_rows: int, earlier: int = 0) -> int:
    """Return the number of transactions of the next segment, given that of all earlier ones.

    A segment of ``easy_rows`` uses all the memory that the writer may; it is exceeded only if there
    would be too many segments, and never beyond ``max_rows``.
    """
    done = before + earlier
    return min(max_rows, max(MIN_ROWS, min(easy_rows, done // _SHARE), done // _MAX_SEGMENTS))


def _list_full(
    state: LogState, piece: Range, target: Callable[[int], int]
) -> Iterator[tuple[Range, int]]:
    """Yield full parts of a range, each with its transactions; they end where commits do.

    ``target`` returns the size of a full part, given the number of transactions in earlier parts.
    """
    files = list_within(state, piece)
    start, held, done = piece[0], 0, 0
    for first, last in cut_range(files, piece):
        held += count_rows(files_within(files, (first, last)))
        if held >= target(done):
            yield (start, last), held
            start, held, done = last + 1, 0, done + held


def _find_neighbour(
    segments: Sequence[DataFile], piece: Range, rows: int, max_rows: int
) -> DataFile | None:
    """Return the adjacent segment to rebuild together with a range; None if there is none."""
    for segment in segments:
        first, last = range_of(segment)
        is_small = segment.rows < rows * _GROWTH and segment.rows + rows <= max_rows
        if is_small and first <= piece[1] + 1 and piece[0] - 1 <= last:
            return segment
    return None

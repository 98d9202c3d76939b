"""Which ranges of blocks become an index segment: few of them, and none too large to be built.

Segments end where commits do. Which ones there are follows from the lake and the settings alone.
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

FEWEST_ROWS = 16_000
"""A segment that is built while blocks are brought has at least this many transactions: so that
little is left to be indexed behind the last commit, when there is no other work beside it."""

_SHARE = 4
"""It also has the transactions before it, divided by this, as long as their memory is no more than
the writer may take: so few segments are made of a short chain, and no row is written twice."""

_MOST_SEGMENTS = 32
"""It always has at least the transactions before it, divided by this: so the number of segments
grows with the logarithm of a long chain."""

_GROWTH = 4
"""A segment is made together with the one before it, unless that has this many times its rows."""


def plan_missing(
    state: LogState, segments: tuple[DataFile, ...], most_rows: int
) -> tuple[list[Range], tuple[DataFile, ...]]:
    """Return the ranges to make where these segments are sound, and the segments that stay.

    A segment never spans a hole. Segments beside a new range are rebuilt with it unless they are
    much larger, or together have more than ``most_rows``; so that few remain, and each row is
    written a few times at most.
    """
    kept = segments
    planned: list[Range] = []
    for first, last in subtract_ranges(state.known_ranges, map(range_of, segments)):
        piece = (first, last)
        rows = 1 + count_rows(list_within(state, piece))
        while neighbour := _find_neighbour(kept, piece, rows, most_rows):
            start, end = range_of(neighbour)
            piece = (min(piece[0], start), max(piece[1], end))
            rows += neighbour.rows
            kept = tuple(each for each in kept if each is not neighbour)
        full = [mc_range for mc_range, _ in _list_full(state, piece, lambda _done: most_rows)]
        planned += full + list(subtract_ranges([piece], full))
    return planned, kept


def list_due(
    state: LogState, ahead: Mapping[Range, int], most_rows: int, easy_rows: int
) -> dict[Range, int]:
    """Return the ranges without a segment that have enough transactions for one, and how many.

    ``ahead`` are those, with their transactions, whose segments are being built; the bounds are
    those of ``choose_rows``.
    """
    before = sum(segment.rows for segment in state.segments) + sum(ahead.values())
    covered = [*map(range_of, state.segments), *ahead]
    due: dict[Range, int] = {}
    for piece in subtract_ranges(state.known_ranges, covered):
        target = partial(choose_rows, most_rows=most_rows, easy_rows=easy_rows, earlier=before)
        full = dict(_list_full(state, piece, target))
        before += sum(full.values())
        due |= full
    return due


def choose_rows(before: int, most_rows: int, easy_rows: int, earlier: int = 0) -> int:
    """Return how many transactions make a segment, given those of all segments before it.

    A segment of ``easy_rows`` takes as much memory as the writer may; more are taken together only
    where there would be too many segments, and never more than ``most_rows``.
    """
    done = before + earlier
    return min(most_rows, max(FEWEST_ROWS, min(easy_rows, done // _SHARE), done // _MOST_SEGMENTS))


def _list_full(
    state: LogState, piece: Range, target: Callable[[int], int]
) -> Iterator[tuple[Range, int]]:
    """Yield full parts of a range, each with its transactions; they end where commits do.

    ``target`` says how many make a part full, by those in the parts before.
    """
    files = list_within(state, piece)
    start, held, done = piece[0], 0, 0
    for first, last in cut_range(files, piece):
        held += count_rows(files_within(files, (first, last)))
        if held >= target(done):
            yield (start, last), held
            start, held, done = last + 1, 0, done + held


def _find_neighbour(
    segments: Sequence[DataFile], piece: Range, rows: int, most_rows: int
) -> DataFile | None:
    """Return the segment beside a range that is rebuilt with it, if one is."""
    for segment in segments:
        first, last = range_of(segment)
        is_small = segment.rows < rows * _GROWTH and segment.rows + rows <= most_rows
        if is_small and first <= piece[1] + 1 and piece[0] - 1 <= last:
            return segment
    return None

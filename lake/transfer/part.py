"""Commits of a partial copy: what is left of those of its source, one for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.ranges import merge_ranges, subtract_ranges

if TYPE_CHECKING:
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.selection import Selection
    from tonlake.lake.log.state import Commit, DataFile

ORIGIN = "pull"
"""Key of a commit's ``source``: the digest of the source's entry, of which it has a part."""


def select_commit(
    commit: Commit, digest: str, selection: Selection, held: tuple[Range, ...]
) -> Commit:
    """Return what a partial copy with the blocks ``held`` has of a commit of its source.

    That is the files of its days and tables, and a baseline only if it is whole. An index segment
    is kept if it is of such days alone, and no table lacks. ``digest`` is that of the source's
    entry; ``previous`` stays as it is.
    """
    has_blocks = commit.has_blocks and selection.has_day(commit.day)
    has_all = all(selection.has(file.path) for file in commit.added)
    kept = msgspec.structs.replace(commit, has_blocks=has_blocks)
    ranges = change_ranges(held, kept)
    segments = commit.segments
    if segments is not None:
        segments = tuple(each for each in segments if _is_within(each, ranges))
        segments = () if selection.lacking else segments
    return msgspec.structs.replace(
        kept,
        added=tuple(file for file in commit.added if selection.has(file.path)),
        removed=tuple(path for path in commit.removed if selection.has(path)),
        source={**commit.source, ORIGIN: digest},
        shards=commit.shards if has_blocks else {},
        segments=segments,
        baseline=commit.baseline if has_all else msgspec.UNSET,
    )


def change_ranges(ranges: tuple[Range, ...], commit: Commit) -> tuple[Range, ...]:
    """Return the masterchain blocks that a lake has after a commit, by those before it."""
    span = commit.first_mc_seqno, commit.last_mc_seqno
    if commit.has_blocks:
        return merge_ranges((*ranges, span))
    return subtract_ranges(ranges, [span]) if commit.undone else ranges


def _is_within(segment: DataFile, ranges: tuple[Range, ...]) -> bool:
    first, last = range_of(segment)
    return any(low <= first and last <= high for low, high in ranges)

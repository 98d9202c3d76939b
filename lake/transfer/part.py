"""Reduces commits of a source to those of a partial copy, one for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.place import read_place
from tonlake.lake.log.ranges import merge_ranges, subtract_ranges

if TYPE_CHECKING:
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.log.selection import Selection
    from tonlake.lake.log.state import Commit, DataFile

ORIGIN = "pull"
"""Key in a commit's ``source``: the digest of the source's full entry."""


def select_commit(
    commit: Commit, digest: str, selection: Selection, held: tuple[Range, ...]
) -> Commit:
    """Return the part of a source's commit that a partial copy with the blocks ``held`` has.

    That is the files of its days and tables, the baseline only if it is complete, and pruned ranges
    only with their kept rows. An index segment is kept if all of its days are selected and no table
    is left out. ``digest`` is that of the source's entry; ``previous`` does not change.
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
        pruned=_select_pruned(commit, selection, held),
        baseline=commit.baseline if has_all else msgspec.UNSET,
    )


def _select_pruned(
    commit: Commit, selection: Selection, held: tuple[Range, ...]
) -> tuple[Range, ...] | msgspec.UnsetType:
    """Return the pruned ranges of a commit if a partial copy may claim them.

    Kept rows belong to the last pruned day. If that day is not selected, the copy has no rows of
    pruned blocks: either all its days come later, or the prune removed all its blocks and is shown.
    """
    if commit.pruned is msgspec.UNSET or subtract_ranges(held, commit.pruned) != held:
        return commit.pruned
    last = commit.pruned[-1][1]
    kept = [at for file in commit.added if 0 < (at := read_place(file.path)).last <= last]
    return commit.pruned if all(selection.has_day(at.day) for at in kept) else msgspec.UNSET


def change_ranges(ranges: tuple[Range, ...], commit: Commit) -> tuple[Range, ...]:
    """Return the masterchain blocks of a lake after a commit, given those before it."""
    span = commit.first_mc_seqno, commit.last_mc_seqno
    if commit.has_blocks:
        return merge_ranges((*ranges, span))
    return subtract_ranges(ranges, [span]) if commit.undone else ranges


def _is_within(segment: DataFile, ranges: tuple[Range, ...]) -> bool:
    first, last = range_of(segment)
    return any(low <= first and last <= high for low, high in ranges)

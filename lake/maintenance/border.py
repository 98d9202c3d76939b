"""Plans a prune: the border, and the files and segments that go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.lake.errors import PruneRefused
from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.place import Place, find_newest_day, is_open, list_places, read_place
from tonlake.lake.log.ranges import Range, merge_ranges

if TYPE_CHECKING:
    from tonlake.lake.log.state import DataFile, LogState


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
    """Plan to prune the blocks before a masterchain seqno or a UTC day.

    Raises:
        PruneRefused: no block would be left.
    """
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

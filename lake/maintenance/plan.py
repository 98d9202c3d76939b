"""Plans merges: the files of consecutive commits, as long as they stay small.

A merge lies within one UTC day and one unbroken range of masterchain blocks, and index segments
cover all of it or nothing, so that the unindexed part stays cheap to read.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from tonlake.lake.index.builder.place import range_of
from tonlake.lake.log.place import Place, is_open, read_place
from tonlake.lake.log.ranges import subtract_ranges
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tonlake.lake.log.state import DataFile, LogState
    from tonlake.lake.settings import LakeSettings

_DISTINGUISHING = frozenset({"blocks", "action_ranges"})
"""Tables whose presence describes a place: places that differ in them are not merged."""

_UNCOUNTED = "state_cells"
"""A merged file may have fewer rows of these tables than its inputs, so they would count twice."""


class Merge(NamedTuple):
    """Files to merge, and the place of the result."""

    place: Place
    files: tuple[DataFile, ...]


class _Unit(NamedTuple):
    """The files at one place, and their number of rows by table."""

    place: Place
    files: tuple[DataFile, ...]
    rows: Counter[str]

    @property
    def max_rows(self) -> int:
        return max(self.rows.values(), default=0)


def plan_merges(
    state: LogState, settings: LakeSettings, depth: Literal["all", "tail"]
) -> list[Merge]:
    """Return all merges, in order; nothing is left to merge after them."""
    found: list[Merge] = []
    queues = _list_queues(state)
    newest = max((queue[-1].place.day for queue in queues), default="")
    for queue in queues:
        if depth == "all" or queue[-1].place.day != newest:
            found += _pack(queue, settings.compact_rows)
        else:
            found += _pack_small(queue, settings)
    return found


def _list_queues(state: LogState) -> list[list[_Unit]]:
    """Return all places, grouped into lists whose members may be merged."""
    by_place: dict[Place, list[DataFile]] = {}
    for file in state.files:
        # The place of kept rows, the only one before a pruned lake's border, is never merged.
        if not is_open(file.path) and read_place(file.path).last > state.last_pruned:
            by_place.setdefault(read_place(file.path), []).append(file)
    bare = subtract_ranges(state.known_ranges, map(range_of, state.segments))
    queues: list[list[_Unit]] = []
    before: tuple[Place, bool, frozenset[str]] | None = None
    are_decoded: bool | None = None
    for place in sorted(by_place):
        is_bare = any(first <= place.last and place.first <= last for first, last in bare)
        rows = Counter[str]()
        for file in by_place[place]:
            if file.table != _UNCOUNTED:
                rows[file.table] += file.rows
        unit = _Unit(place, tuple(by_place[place]), rows)
        known = _DISTINGUISHING.intersection(rows)
        mine = _are_decoded(rows)
        is_next = before == (place._replace(first=0, last=place.first - 1), is_bare, known)
        if is_next and (mine == are_decoded or None in {mine, are_decoded}):
            queues[-1].append(unit)
            are_decoded = are_decoded if mine is None else mine
        else:
            queues.append([unit])
            are_decoded = mine
        before = (place._replace(first=0), is_bare, known)
    return queues


def _are_decoded(rows: Counter[str]) -> bool | None:
    """Return whether a file has the message bodies of a place; None without messages.

    Places with and without are not merged: ``tonlake rebuild bodies`` looks for the latter.
    """
    return MESSAGE_BODIES.name in rows if MESSAGES.name in rows else None


def _pack(units: Iterable[_Unit], max_rows: int) -> Iterator[Merge]:
    """Yield maximal runs of consecutive places that fit; single places are left out."""
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
    if len(units) > 1:
        place = units[0].place._replace(last=units[-1].place.last)
        yield Merge(place, tuple(file for unit in units for file in unit.files))


def _pack_small(units: list[_Unit], settings: LakeSettings) -> list[Merge]:
    """Return places to merge: adjacent ones, many of similar size.

    Sizes fall into steps of a factor of ``compact_commits``, so each row is merged once per step.
    """
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

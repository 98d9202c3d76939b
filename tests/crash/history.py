"""The history of a small lake in steps: commits, segments, compaction, undo, sweep."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.lake.chain import Chain, commit_made
from tonlake.lake.errors import LakeNotFound
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.state import LogState, read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.orphan import sweep_orphans
from tonlake.lake.maintenance.removal import undo_after
from tonlake.lake.settings import LakeSettings

SETTINGS = LakeSettings(compact_rows=100, orphan_grace_s=0)
RANGES = ((1, 2), (3, 4), (7, 8), (5, 6))
DAYS = ("2024-01-01", "2024-01-02")
PACKED_AFTER = 2
"""Commits after this block are packs."""

KEPT = 4
"""Newest block that stays when others are undone."""


class History:
    """The steps; each does nothing where the lake already has its result."""

    def __init__(self) -> None:
        """Generate the rows."""
        chain = Chain(1, accounts=3)
        self.tables = {mc_range: chain.make(*mc_range) for mc_range in sorted(RANGES)}
        self.rest = (9, 10)
        self.tables[self.rest] = chain.make(*self.rest)

    def steps(self) -> Iterator[Callable[[Path], object]]:
        """Yield the steps in order."""
        for mc_range in RANGES[:3]:
            yield partial(self.commit, mc_range=mc_range)
        yield rebuild_index
        yield lambda lake: compact_lake(lake, SETTINGS)
        yield lambda lake: sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
        yield lambda lake: self.commit(lake, RANGES[3])
        yield lambda lake: undo_after(
            lake, KEPT, SETTINGS, max_mc_blocks=1000, source={}, reopen=lambda _state, _first: ()
        )
        yield lambda lake: self.commit(lake, RANGES[3])
        yield lambda lake: self.commit(lake, RANGES[2])
        yield partial(self.commit, mc_range=self.rest)
        yield lambda lake: rebuild_index(lake, everything=True)
        yield lambda lake: compact_lake(lake, SETTINGS)
        yield lambda lake: sweep_orphans(lake, LakeSettings(orphan_grace_s=0))

    def commit(self, lake: Path, mc_range: tuple[int, int]) -> None:
        """Commit a missing range."""
        if not any(mc_range[0] <= last and first <= mc_range[1] for first, last in ranges_of(lake)):
            day, pack_rows = DAYS[mc_range == self.rest], 1000 * (mc_range[0] > PACKED_AFTER)
            tables = self.tables[mc_range]
            commit_made(lake, *mc_range, tables, SETTINGS, day=day, pack_rows=pack_rows)

    def finish(self, lake: Path) -> None:
        """Bring in everything missing, and tidy up: the end of every run of the history."""
        sweep_orphans(lake, LakeSettings(orphan_grace_s=0))
        for mc_range in (*RANGES, self.rest):
            self.commit(lake, mc_range)
        rebuild_index(lake)
        compact_lake(lake, SETTINGS)
        sweep_orphans(lake, LakeSettings(orphan_grace_s=0))


def ranges_of(lake: Path) -> tuple[tuple[int, int], ...]:
    """Return the contents of the lake; nothing if it has no commit."""
    return state_of(lake).ranges


def state_of(lake: Path) -> LogState:
    """Return the sum of the commits, starting from none."""
    state = LogState()
    with suppress(LakeNotFound):
        state = read_state(lake)
    return state

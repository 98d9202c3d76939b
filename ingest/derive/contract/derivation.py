"""Contracts as files of the lake: those of the account states and messages of one commit.

The files of a range follow from its base rows and those of the ranges before it. A range that comes
after later ones changes what these could know, so the run that brought it derives them again at its
end; after one that was killed ``tonlake rebuild contracts`` does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa

from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.decode.heap import without_collector
from tonlake.ingest.derive.contract.detection import ContractDetection
from tonlake.ingest.derive.contract.kept import KeptAnswers
from tonlake.ingest.derive.contract.known import KnownLake
from tonlake.ingest.derive.contract.record import keep_first_codes, make_history, make_interfaces
from tonlake.ingest.derive.contract.session import GetMethodSession
from tonlake.ingest.derive.contract.transfer import (
    keep_accounts,
    list_recipients,
    make_moves,
    select_moves,
)
from tonlake.ingest.derive.contract.world import CellCache, Network, World
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.spread import HERE
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
)
from tonlake.lake.log.reader import LogReader
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    BLOCKS,
    CONFIG_PARAMS,
    LIBRARIES,
    STATE_CELLS,
)
from tonlake.lake.schema.contract import INTERFACES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tonlake.ingest.derive.contract.known import AccountState
    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.spread import Shared, Spread
    from tonlake.lake.log.place import Place
    from tonlake.lake.log.state import Commit, DataFile, LogState, Undoing

GAS_LIMIT = 1_000_000
"""Gas limit of a get-method at ingest."""

WALL_MS = 10_000
"""Milliseconds a get-method may run at ingest; gas ends it before."""

_CELLS_KEPT = 5_000
"""Cells kept from one commit to the next, most of them of codes that come again: two megabytes.
Above it all are dropped."""


class ContractFinder:
    """Derives the tables of contracts of a range: the stage ``contracts``.

    It holds the TVM, so close it when done.
    """

    def __init__(self, lake_dir: Path, settings: IngestSections, cells: CellFinder) -> None:
        """Take the lake's folder; processes of the TVM are started when they are needed."""
        self.spread: Spread = HERE
        self._lake_dir, self._settings = lake_dir, settings
        self._log = LogReader(lake_dir)
        self._cells = cells
        self._lake = KnownLake(lake_dir, settings)
        self._states: list[AccountState] | None = None
        self._cache = CellCache.make()
        self._kept = KeptAnswers()
        self._undoings: tuple[Undoing, ...] = ()
        patient = msgspec.structs.replace(settings.tvm, wall_ms=WALL_MS)
        self._tvm = TvmPool(patient)

    def close(self) -> None:
        """Stop the TVM and close the lake."""
        self._tvm.close()
        self._lake.close()

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        _earlier: Sequence[NewFile] = (),
    ) -> Derivation:
        """Return the contract files of a range.

        Raises:
            LakeCorrupt: a file that is needed is damaged.
        """
        first = place.first
        if place.is_baseline and not isinstance(state.baseline, msgspec.UnsetType):
            # Its accounts were the same until the block after which the state was read. They know
            # each other from the lake, and those that blocks had touched by then, as of then.
            first = state.baseline.state_mc_seqno + 1
        found = self._derive(state, rows, first)
        files = [NewFile(name, place, table) for name, table in sorted(found.items())]
        return Derivation(files, frozenset())

    def _derive(
        self, state: LogState, rows: Mapping[str, pa.Table], first: int
    ) -> dict[str, pa.Table]:
        """Return the tables of contracts of the base rows of a range that begins at ``first``.

        Each worker takes some of the accounts.
        """
        self._states = None
        if ACCOUNT_STATES.name not in rows:
            return {}
        count = self.spread.count
        if count == 1:
            found, self._states = self._derive_part(state, rows, first)
            return found
        read = {name: rows[name] for name in _WORLD if name in rows} | select_moves(rows)
        shared = self.spread.share(read)
        parts = [
            _Part(self._lake_dir, self._settings, shared, first, number, count)
            for number in range(count)
        ]
        tables = list(self.spread.map(_derive_part, parts))
        joined = {name: pa.concat_tables([each[name] for each in tables]) for name in tables[0]}
        return joined | {INTERFACES.name: keep_first_codes(joined[INTERFACES.name])}

    def derive_part(self, part: _Part) -> dict[str, pa.Table]:
        """Return the tables of some of the accounts of a commit."""
        return self._derive_part(
            self._log.read(), part.rows.open(), part.first, number=part.number, parts=part.parts
        )[0]

    def _derive_part(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        first: int,
        number: int = 0,
        parts: int = 1,
    ) -> tuple[dict[str, pa.Table], list[AccountState]]:
        """Return the tables of one of ``parts`` parts of the accounts, and their states."""
        if state.undoings != self._undoings:  # cells may have gone with the blocks
            self._cache, self._undoings = CellCache.make(), state.undoings
        world, detection = self._look(state, rows, first)
        every = list(world.list_states())
        start, end = (_find_border(every, len(every) * at // parts) for at in (number, number + 1))
        states = every[start:end]
        if parts > 1:
            rows = keep_accounts(rows, {each.address for each in states})
        with without_collector():
            found = make_history(detection.detect(states, first))
        world.load_cells({each.code_hash for each in states})
        found[INTERFACES.name] = make_interfaces(states, world)
        gone = {
            place
            for place in list_recipients(rows)
            if (left := world.find_state(*place)) is None or left.code_hash is None
        }
        before = make_history(detection.detect_before(gone, first) if gone else ())
        if self._cache.tree.count > _CELLS_KEPT:
            self._cache = CellCache.make()
        return found | make_moves(rows, found, before), states

    def _look(
        self, state: LogState, rows: Mapping[str, pa.Table], first: int
    ) -> tuple[World, ContractDetection]:
        """Return what a commit's rows show, and the detection in them."""
        world = World(self._lake, state, self._cells, rows, self._cache)
        network = Network(world, first)
        session = GetMethodSession(world, network, self._tvm, GAS_LIMIT, kept=self._kept)
        return world, ContractDetection(world, session, _find_global_id(state, rows))

    def rederive(self, state: LogState | None, part: tuple[Place, list[DataFile]]) -> Derivation:
        """Return the contract files of a range with these files, in a lake as it is by default."""
        place, files = part
        rows = {file.table: read_rows(self._lake_dir, file) for file in files}
        with without_collector():
            return self(state or self._log.read(), rows, place)

    def learn(self, commit: Commit) -> None:
        """Remember the states of the rows that were derived from last, which are committed now."""
        if self._states is not None:  # of a commit in parts, the workers ask the lake
            self._lake.learn({each.address: each for each in self._states}, commit)
        self._states = None


class _Part(NamedTuple):
    """One of ``parts`` parts of the accounts of a commit, with the rows that are read."""

    lake_dir: Path
    settings: IngestSections
    rows: Shared[dict[str, pa.Table]]
    first: int
    number: int
    parts: int


_WORLD = tuple(
    table.name for table in (ACCOUNT_STATES, STATE_CELLS, BLOCKS, CONFIG_PARAMS, LIBRARIES)
)


def _derive_part(part: _Part) -> dict[str, pa.Table]:
    return open_finder(part.lake_dir, part.settings).derive_part(part)


def _find_border(states: Sequence[AccountState], at: int) -> int:
    """Return the first place from ``at`` on where states of another account begin."""
    while 0 < at < len(states) and states[at].address == states[at - 1].address:
        at += 1
    return at


@lru_cache(1)
def open_finder(lake_dir: Path, settings: IngestSections) -> ContractFinder:
    """Return the finder of a worker process, which lives as long as that."""
    return ContractFinder(lake_dir, settings, CellFinder(lake_dir, settings))


def _find_global_id(state: LogState, rows: Mapping[str, pa.Table]) -> int | None:
    if state.network is not None:
        return state.network.global_id
    blocks = rows.get(BLOCKS.name)
    return None if blocks is None else blocks["global_id"][0].as_py()

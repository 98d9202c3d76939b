"""Derives the contract files of a commit from its account states and messages.

The files of a range depend on its base rows and on the ranges before it. A backfilled range changes
what later ranges could know, so the run that ingested it derives them again at its end; if that run
was killed, ``tonlake rebuild contracts`` does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from itertools import chain, pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.statecell import CellFinder
from tonlake.ingest.derive.contract.detection import ContractDetection
from tonlake.ingest.derive.contract.program import ProgramCache
from tonlake.ingest.derive.contract.record import keep_first_codes, make_history, make_interfaces
from tonlake.ingest.derive.contract.session import GetMethodSession
from tonlake.ingest.derive.contract.transfer import list_recipients, make_moves, select_moves
from tonlake.ingest.derive.contract.world import CellCache, KnownAccount, KnownLake, Network, World
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope
from tonlake.ingest.spread import HERE, Shared, Spread
from tonlake.lake.file.rows import read_rows, without_collector
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
    Place,
    list_baseline_files,
    list_files_between,
    list_places,
    read_place,
)
from tonlake.lake.log.state import Commit, DataFile, LogState, Undoing
from tonlake.lake.schema import (
    ACCOUNT_STATES,
    BASE_TABLES,
    BLOCKS,
    CONFIG_PARAMS,
    CONTRACT_TABLES,
    INTERFACES,
    LIBRARIES,
    MESSAGES,
    STATE_CELLS,
)

WALL_MS = 10_000
"""Wall-clock limit of a get-method during ingest, in milliseconds; gas normally ends it earlier."""

_STATES_OF_PART = 12_000
"""Most account states per part of a commit; a worker holds them as Python objects."""

_CELLS_KEPT = 5_000
"""Cells kept between commits, mostly of recurring codes: two megabytes. Above it all are
dropped."""


class ContractFinder:
    """Derives contract tables (the stage ``contracts``); it holds TVM processes: close it."""

    def __init__(self, lake_dir: Path, settings: IngestSections, cells: CellFinder) -> None:
        """Open the lake's folder; TVM processes start on demand."""
        self.spread: Spread = HERE
        self._lake_dir, self._settings = lake_dir, settings
        self._cells = cells
        self._lake = KnownLake(lake_dir, settings)
        self._states: list[KnownAccount] | None = None
        self._cache = CellCache.make()
        self._programs = ProgramCache()
        self._undoings: tuple[Undoing, ...] = ()
        tvm_settings = msgspec.structs.replace(settings.tvm, wall_ms=WALL_MS)
        self._tvm = TvmPool(tvm_settings)

    def close(self) -> None:
        """Stop the TVM processes and close the lake."""
        self._tvm.close()
        self._lake.close()

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        _earlier: Sequence[NewFile] = (),
    ) -> Derivation:
        """Return the contract files of a range; raise LakeCorrupt if a file it needs is damaged."""
        first = place.first
        if place.is_baseline and not isinstance(state.baseline, msgspec.UnsetType):
            # Accounts of the baseline were unchanged until the block after which the state was
            # read. They see each other through the lake; accounts that blocks had touched by then
            # appear as of then.
            first = state.baseline.state_mc_seqno + 1
        found = self._derive(state, rows, first)
        files = [NewFile(name, place, table) for name, table in sorted(found.items())]
        return Derivation(files, frozenset())

    def _derive(
        self, state: LogState, rows: Mapping[str, pa.Table], first: int
    ) -> dict[str, pa.Table]:
        """Return the tables of a range that begins at ``first``; workers take parts of it."""
        self._states = None
        if ACCOUNT_STATES.name not in rows:
            return {}
        if self.spread.count == 1:
            found, self._states = self._derive_part(state, rows, first)
            return found
        # As many for each process: a part that is left over would be waited for.
        each = -(-rows[ACCOUNT_STATES.name].num_rows // (_STATES_OF_PART * self.spread.count))
        count = self.spread.count * each
        read = {name: rows[name] for name in _WORLD if name in rows} | select_moves(rows)
        shared = self.spread.share(read)
        derive = partial(_derive_part, self._lake_dir, self._settings, shared, first, count)
        tables = list(self.spread.map(derive, range(count)))
        joined = {name: pa.concat_tables([each[name] for each in tables]) for name in tables[0]}
        return joined | {INTERFACES.name: keep_first_codes(joined[INTERFACES.name])}

    def derive_part(
        self, shared: Shared[dict[str, pa.Table]], first: int, count: int, number: int
    ) -> dict[str, pa.Table]:
        """Return the contract tables of one of ``count`` parts of the accounts of a commit."""
        rows = shared.open()
        own = {name: _keep_accounts(rows[name], column, number, count) for name, column in _OWN}
        others = rows[ACCOUNT_STATES.name]
        return self._derive_part(self._cells.log.read(), rows | own, first, others)[0]

    @without_collector()
    def _derive_part(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        first: int,
        others: pa.Table | None = None,
    ) -> tuple[dict[str, pa.Table], list[KnownAccount]]:
        """Return the tables of the accounts in ``rows``, and their states; ``others`` has all."""
        if state.undoings != self._undoings:  # undone blocks may have held cells
            self._cache, self._undoings = CellCache.make(), state.undoings
        world = World(self._lake, state, self._cells, rows, self._cache, others)
        network = Network(world, first)
        session = GetMethodSession(world, network, self._tvm, programs=self._programs)
        detection = ContractDetection(world, session, _find_global_id(state, rows))
        states = list(world.list_states())
        found = make_history(detection.detect(states, first))
        world.load_cells({each.code_hash for each in states})
        found[INTERFACES.name] = make_interfaces(states, world)
        moves = select_moves(rows)
        gone = {
            place
            for place in list_recipients(moves)
            if (left := world.find_state(*place)) is None or left.code_hash is None
        }
        before = make_history(detection.detect_before(gone, first) if gone else ())
        if self._cache.tree.count > _CELLS_KEPT:
            self._cache = CellCache.make()
        return found | make_moves(moves, found, before), states

    def rederive(self, state: LogState | None, part: tuple[Place, list[DataFile]]) -> Derivation:
        """Return the contract files of a range from its base files."""
        place, files = part
        rows = {file.table: read_rows(self._lake_dir, file) for file in files}
        return self(state or self._cells.log.read(), rows, place)

    @contextmanager
    def set_apart(self) -> Iterator[None]:
        """Derive rows of blocks that may never be committed: their cells are not kept."""
        kept, self._cache = (self._cache, self._undoings), CellCache.make()
        try:
            yield
        finally:
            (self._cache, self._undoings), self._states = kept, None

    def learn(self, commit: Commit) -> None:
        """Keep the states of the rows derived last, which the commit has written."""
        if self._states is not None:  # workers derived a split commit: they query the lake
            self._lake.learn({each.address: each for each in self._states}, commit)
        self._states = None


_OWN = ((ACCOUNT_STATES.name, "account"), (MESSAGES.name, "tx_account"))
"""Tables of which a part reads only the rows of its own accounts, and the account column."""

_WORLD = tuple(
    table.name for table in (ACCOUNT_STATES, STATE_CELLS, BLOCKS, CONFIG_PARAMS, LIBRARIES)
)


def _derive_part(
    lake_dir: Path,
    settings: IngestSections,
    shared: Shared[dict[str, pa.Table]],
    first: int,
    count: int,
    number: int,
) -> dict[str, pa.Table]:
    return open_finder(lake_dir, settings).derive_part(shared, first, count, number)


def _keep_accounts(rows: pa.Table, column: str, number: int, count: int) -> pa.Table:
    """Return the rows of a part's accounts; a part is a range of first bytes of account ids."""
    border, end = (-(-256 * at // count) for at in (number, number + 1))
    accounts = rows[column]
    first = pa.scalar(bytes([border]).ljust(32, b"\0"), accounts.type)
    last = pa.scalar(bytes([end - 1]).ljust(32, b"\xff"), accounts.type)
    return rows.filter(pc.and_(pc.greater_equal(accounts, first), pc.less_equal(accounts, last)))


@lru_cache(1)
def open_finder(lake_dir: Path, settings: IngestSections) -> ContractFinder:
    """Return the finder of a worker process, which lives as long as the process."""
    return ContractFinder(lake_dir, settings, CellFinder(lake_dir, settings))


def _find_global_id(state: LogState, rows: Mapping[str, pa.Table]) -> int | None:
    if state.network is not None:
        return state.network.global_id
    blocks = rows.get(BLOCKS.name)
    return None if blocks is None else blocks["global_id"][0].as_py()


_BASE = frozenset(table.name for table in BASE_TABLES)
_DERIVED = frozenset(table.name for table in CONTRACT_TABLES)


def rederive_contracts(
    lake_dir: Path, state: LogState, settings: IngestSections, scope: Scope
) -> Derivation:
    """Return the contract files of a scope; ranges without blocks keep their recorded rows."""
    base = {place: files for place, files in _list_base(state).items() if scope.covers(place)}
    baseline = _list_baseline(state, scope)
    old = frozenset(
        file.path
        for file in state.files
        if file.table in _DERIVED and ((at := read_place(file.path)) in base or at in baseline)
    )
    parts = [(at, files) for at, several in baseline.items() for files in several]
    parts += base.items()
    return Derivation(_rederive_ranges(lake_dir, state, settings, parts, scope), old)


def _list_baseline(state: LogState, scope: Scope) -> dict[Place, list[list[DataFile]]]:
    """Return the parts of the baseline, each of one file of account states and one of cells.

    Cells in other parts are found through the lake. The first blocks of the lake have the global
    version.
    """
    # The file of a part's cells follows the file of its states.
    files = chain.from_iterable(state.by_place.values())
    behind = {one.path: following for one, following in pairwise(files)}
    states = list_baseline_files(state, ACCOUNT_STATES.name)
    places = [place for file in states[:1] if scope.covers(place := read_place(file.path))]
    blocks = [
        file
        for place in places
        for file in list_files_between(state, place.first + 1, place.first + 1, BLOCKS.name)[:1]
    ]
    parts = []
    for file in states:
        cells = behind.get(file.path)
        pair = [cells] if cells is not None and cells.table == STATE_CELLS.name else []
        parts.append([file, *pair, *blocks])
    return dict.fromkeys(places, parts)


def _list_base(state: LogState) -> dict[Place, list[DataFile]]:
    """Return the base files of the ranges that have blocks."""
    found: dict[Place, list[DataFile]] = {place: [] for place in list_places(state)}
    for file in state.files:
        if file.table in _BASE and (place := read_place(file.path)) in found:
            found[place].append(file)
    return {
        place: files
        for place, files in found.items()
        if any(file.table == BLOCKS.name for file in files)
    }


def _rederive_ranges(
    lake_dir: Path,
    state: LogState,
    settings: IngestSections,
    parts: Sequence[tuple[Place, list[DataFile]]],
    scope: Scope,
) -> Iterator[NewFile]:
    with (
        closing(CellFinder(lake_dir, settings)) as cells,
        closing(ContractFinder(lake_dir, settings, cells)) as finder,
    ):
        made: Iterable[Derivation]
        if scope.spread.count == 1:
            made = (finder.rederive(state, part) for part in parts)
        else:
            made = scope.spread.map(partial(_rederive_elsewhere, lake_dir, settings), parts)
        for done, derivation in enumerate(made, 1):
            yield from derivation.files
            scope.on_range(done, len(parts))


def _rederive_elsewhere(
    lake_dir: Path, settings: IngestSections, part: tuple[Place, list[DataFile]]
) -> Derivation:
    """Derive a range in a worker process, which keeps the lake open."""
    return open_finder(lake_dir, settings).rederive(None, part)

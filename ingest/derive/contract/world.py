"""The chain as of one commit: account states, cells, configurations and libraries.

Rows of the commit take precedence; the rest is read from the lake as of the commit's first
masterchain block. So answers are the same whenever a commit is derived again. Account states and
rows of small tables of the lake are kept between commits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from importlib.resources import files
from itertools import chain
from operator import and_, attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UnsetType

from tonlake.ingest.assemble.statecell import CellFinder, LakeCache
from tonlake.ingest.decode.cell.packed import append_packed
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.stack import AddrStd, Cell
from tonlake.ingest.derive.tvm.call import (
    VERSION_PARAM,
    NetworkConfig,
    join_config,
    make_version_param,
)
from tonlake.ingest.errors import BocError, MissingCell
from tonlake.ingest.settings import IngestSections
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import iter_tuples, read_rows
from tonlake.lake.index.index import NewestStates
from tonlake.lake.log.place import list_files, list_files_between, read_place
from tonlake.lake.log.ranges import subtract_ranges
from tonlake.lake.log.state import Commit, DataFile, LogState
from tonlake.lake.schema import ACCOUNT_STATES, BLOCKS, CONFIG_PARAMS, LIBRARIES, STATE_CELLS, Table
from tonlake.lake.settings import LakeSettings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

STATE_COLUMNS = (
    *("workchain", "account", "mc_seqno", "last_trans_lt", "utime"),
    *("balance", "extra_currencies", "code_hash", "data_hash"),
)
_FEW_ROWS = 10_000
"""Maximum number of unindexed account states that are held in memory."""

_FILES_KEPT = 1_000
"""Maximum number of files of small tables held in memory."""

Rows = list[tuple[Any, ...]]


class KnownAccount(NamedTuple):
    """An account after the last of its blocks that a masterchain block commits."""

    workchain: int
    account: bytes
    mc_seqno: int
    lt: int
    utime: int
    balance: int
    extra_currencies: str | None
    code_hash: bytes | None
    data_hash: bytes | None

    @property
    def address(self) -> AddrStd:
        """Address of the account."""
        return AddrStd(self.workchain, self.account)


class KnownLake:
    """The lake as contract detection reads it; close it after use."""

    def __init__(self, lake_dir: Path, settings: IngestSections) -> None:
        self.lake_dir = lake_dir
        self._most = most = settings.ingest.cached_rows
        self._newest = _NewestCache(lake_dir, settings.lake, most)
        lake = lake_dir, settings.lake, ACCOUNT_STATES.name
        self._earlier = LakeCache[tuple[AddrStd, int], KnownAccount](
            *lake, _ask_earlier, statement=_NEWEST, most=most
        )
        self._first = LakeCache[tuple[AddrStd, int], tuple[KnownAccount, ...]](
            *lake, _ask_first, statement=_FIRST, most=most
        )

    def close(self) -> None:
        """Release the lake."""
        self._newest.close()
        self._earlier.close()
        self._first.close()

    def find_states(
        self, addresses: set[AddrStd], state: LogState, before: int
    ) -> dict[AddrStd, KnownAccount]:
        """Return the last state of each account before the masterchain block ``before``."""
        if not state.ranges or state.ranges[-1][1] < before:
            return self._newest.find(addresses, state)
        keys = {(address, before) for address in addresses}
        found = self._earlier.find(keys, state)
        return {address: row for (address, _before), row in found.items()}

    def find_first_states(
        self, addresses: set[AddrStd], state: LogState, until: int
    ) -> dict[AddrStd, tuple[KnownAccount, ...]]:
        """Return states of accounts up to a block: the first with each pair of code and data."""
        found = self._first.find({(address, until) for address in addresses}, state)
        return {address: row for (address, _until), row in found.items()}

    def learn(self, states: Mapping[AddrStd, KnownAccount], commit: Commit) -> None:
        """Keep the newest states of a commit at the end of the chain."""
        if len(states) <= self._most:
            self._newest.learn(states, commit)


@lru_cache(_FILES_KEPT)
def _read_file(lake_dir: Path, file: DataFile, columns: Sequence[str]) -> Rows:
    """Return the rows of a file; files are immutable."""
    return list(iter_tuples(read_rows(lake_dir, file, columns), columns))


class _NewestCache(LakeCache[AddrStd, KnownAccount]):
    """Newest states of accounts: from the index, and from files of blocks not yet indexed.

    Files do not list the accounts they have, so all of them are read. A small number of rows,
    such as a follower adds between two segments, is held in memory; larger numbers are queried with
    SQL.
    """

    def __init__(self, lake_dir: Path, settings: LakeSettings, most: int) -> None:
        lake = lake_dir, settings, ACCOUNT_STATES.name
        super().__init__(*lake, _ask_newest, statement=_NEWEST, most=most)
        self._indexed = NewestStates(lake_dir)
        self._few = min(most, _FEW_ROWS)
        self._loose: LogState | None = None
        self._loose_states: dict[AddrStd, KnownAccount] | None = None

    def close(self) -> None:
        super().close()
        self._loose = self._loose_states = None

    def _look_up(self, keys: set[AddrStd], state: LogState) -> Mapping[AddrStd, KnownAccount]:
        if self._loose is None:
            self.close()
            self._loose = self._leave_out_indexed(state)
            if sum(file.rows for file in self._loose.files) <= self._few:
                self._loose_states = _read_newest(self._lake_dir, self._loose.files)
        if self._loose_states is None:
            found = dict(super()._look_up(keys, self._loose))
        else:
            found = {key: self._loose_states[key] for key in keys & self._loose_states.keys()}
        for address, (row, utime) in self._indexed.find(keys).items():
            known = found.get(AddrStd(*address))
            if known is None or known.mc_seqno < row.mc_seqno:
                at = self._read_utime(AddrStd(*address), row, state) if utime is None else utime
                found[AddrStd(*address)] = KnownAccount(*address, *_when(row), at, *_what(row))
        return found

    def _leave_out_indexed(self, state: LogState) -> LogState:
        """Return a state with only the files that have unindexed blocks."""
        pieces = subtract_ranges(state.known_ranges, self._indexed.open(state))
        found = (list_files_between(state, *piece, ACCOUNT_STATES.name) for piece in pieces)
        files = tuple(dict.fromkeys(chain.from_iterable(found)))
        return LogState(number=state.number, files=files, ranges=state.ranges)

    def _read_utime(self, address: AddrStd, row: Any, state: LogState) -> int:  # noqa: ANN401 - a row
        """Read the block time of a state from its data file."""
        at = max(1, row.mc_seqno)  # rows of the zero state are stored with the first block
        values = {**address._asdict(), "mc_seqno": row.mc_seqno, "hash": row.hash}
        is_state = reduce(and_, (pc.field(name) == value for name, value in values.items()))
        for file in list_files_between(state, at, at, ACCOUNT_STATES.name):
            for utime in read_rows(self._lake_dir, file, ("utime",), is_state)["utime"].to_pylist():
                return int(utime)
        raise LakeCorrupt(ACCOUNT_STATES.name, f"indexed state of block {row.mc_seqno} missing")


_when = attrgetter("mc_seqno", "last_trans_lt")
_what = attrgetter("balance", "extra_currencies", "code_hash", "data_hash")


def _read_newest(lake_dir: Path, files: Iterable[DataFile]) -> dict[AddrStd, KnownAccount]:
    """Return the newest state of every account in ``files``."""
    columns = (*STATE_COLUMNS, "block_seqno")
    rows = [ACCOUNT_STATES.empty.select(columns)]
    rows += (read_rows(lake_dir, file, columns) for file in files)
    order = [("mc_seqno", "ascending"), ("block_seqno", "ascending")]
    states = map(
        KnownAccount._make, iter_tuples(pa.concat_tables(rows).sort_by(order), STATE_COLUMNS)
    )
    return {state.address: state for state in states}


_SQL = files("tonlake.ingest.derive.contract") / "states.sql"
_NEWEST, _FIRST = _SQL.read_text(encoding="utf-8").split(";")
_NEVER = 1 << 62


def _ask_newest(connection: DuckDBPyConnection, keys: set[AddrStd]) -> dict[AddrStd, KnownAccount]:
    states = _read_before(connection, keys, _NEVER)
    return {address: state for address, state in states.items() if address in keys}


def _ask_earlier(
    connection: DuckDBPyConnection, keys: set[tuple[AddrStd, int]]
) -> dict[tuple[AddrStd, int], KnownAccount]:
    (before,) = {before for _address, before in keys}
    states = _read_before(connection, {address for address, _before in keys}, before)
    return {key: states[key[0]] for key in keys if key[0] in states}


def _ask_first(
    connection: DuckDBPyConnection, keys: set[tuple[AddrStd, int]]
) -> dict[tuple[AddrStd, int], tuple[KnownAccount, ...]]:
    (until,) = {until for _address, until in keys}
    accounts = sorted({address.account for address, _until in keys})
    rows = connection.execute(_FIRST, {"accounts": accounts, "until": until})
    found: dict[AddrStd, tuple[KnownAccount, ...]] = {}
    for state in map(KnownAccount._make, rows.fetchall()):
        found[state.address] = (*found.get(state.address, ()), state)
    return {key: found[key[0]] for key in keys if key[0] in found}


def _read_before(
    connection: DuckDBPyConnection, addresses: set[AddrStd], before: int
) -> dict[AddrStd, KnownAccount]:
    """Return the last states before a block of all accounts with the same account ids."""
    accounts = sorted({address.account for address in addresses})
    rows = connection.execute(_NEWEST, {"accounts": accounts, "before": before})
    states = (KnownAccount(*row) for row in rows.fetchall())
    return {state.address: state for state in states}


_ORDER = itemgetter(0, 1, 2, -1)
"""Account, masterchain block and block of a state."""


class NotLoaded(Exception):
    """A required state, or its cells, has not been looked up yet."""

    def __init__(self, address: AddrStd) -> None:
        self.address = address
        super().__init__(str(address))


class CellCache(NamedTuple):
    """Looked-up cells in one tree, with their positions in it by hash."""

    tree: CellTree
    places: dict[bytes, int]

    @classmethod
    def make(cls) -> CellCache:
        """Return an empty cache."""
        return cls(CellTree(), {})


class World:
    """States and cells of one commit and of the lake before it."""

    def __init__(
        self,
        lake: KnownLake,
        state: LogState,
        finder: CellFinder,
        tables: Mapping[str, pa.Table],
        cache: CellCache | None = None,
        others: pa.Table | None = None,
    ) -> None:
        """Combine the rows of a commit, or of some of its accounts, with the lake before it.

        ``cache`` has cells of earlier commits, and receives those that are looked up. ``others``
        has the states of all accounts of the commit, if ``tables`` has only some.
        """
        self.tables = tables
        self.finder = finder
        self._state = state
        self._lake = lake
        self._own = _read_histories(_find(tables, ACCOUNT_STATES))
        self._histories = dict(self._own)
        self._others = others
        self._searched: set[AddrStd] = set()
        self._before: dict[AddrStd, KnownAccount | None] = {}
        self._later: dict[AddrStd, tuple[KnownAccount, ...]] = {}
        self._tree, self._places = cache or CellCache.make()
        self._absent: set[bytes | None] = set()
        baseline = state.baseline
        self._unknown_to = 0 if isinstance(baseline, UnsetType) else baseline.state_mc_seqno

    def list_rows(self, table: str, columns: Sequence[str], before: int) -> Iterator[Rows]:
        """Yield the rows before a block, file by file, newest file first.

        For tables with rows in few commits. The first column is the masterchain block.
        """
        files = list_files(self._state, table)
        for file in sorted(files, key=lambda file: read_place(file.path), reverse=True):
            if read_place(file.path).first < before:
                held = _read_file(self._lake.lake_dir, file, columns)
                rows = [row for row in held if row[0] < before]
                if rows:
                    yield rows

    def is_whole(self, before: int) -> bool:
        """Return whether the lake has every block up to one, or its baseline and those after.

        Not of rows that were reported: those of libraries are none of them.
        """
        is_reported = _find(self.tables, BLOCKS)["state_root_hash"].null_count
        if is_reported or self._state.reported_ranges:
            return False
        baseline = self._state.baseline
        begins = {1} if isinstance(baseline, UnsetType) else {1, baseline.mc_seqno}
        ranges = ((1, 0), *self._state.known_ranges)
        return any(first in begins and before <= last + 1 for first, last in ranges)

    def list_states(self) -> Iterator[KnownAccount]:
        """Yield the states in ``tables``, by account and masterchain block."""
        for history in self._own.values():
            yield from history

    def list_known(self, address: AddrStd) -> Iterator[KnownAccount]:
        """Yield the known states of an account: the one before the commit, then those in it.

        They are followed by later states, which may replace states missing from a late baseline.
        """
        before = self._before.get(address)
        if before is not None:
            yield before
        yield from self._histories.get(address, ())
        yield from self._later.get(address, ())

    def find_state(self, address: AddrStd, mc_seqno: int) -> KnownAccount | None:
        """Return the state of an account after a masterchain block; None if it does not exist.

        For accounts that blocks touched before a baseline was read, the lake may lack the states
        before the baseline, or their cells; the next known state is returned instead. Raises
        NotLoaded for a state from before the commit: call ``load_states`` first.
        """
        history = self._histories.get(address, ())
        place = bisect_right(history, mc_seqno, key=lambda state: state.mc_seqno)
        if not place and address not in self._before:
            raise NotLoaded(address)
        state = history[place - 1] if place else self._before[address]
        if mc_seqno > self._unknown_to or self._may_be_known(state):
            return state
        later = (*history[place:], *self._later.get(address, ()))
        return next(filter(self._may_be_known, later), state)

    def _may_be_known(self, state: KnownAccount | None) -> bool:
        """Return whether ``state`` exists and none of its cells is known to be absent."""
        return state is not None and self._absent.isdisjoint((state.code_hash, state.data_hash))

    def load_states(self, addresses: Iterable[AddrStd], before: int) -> None:
        """Look up states of accounts: in other parts of the commit, else the last before it.

        An account of another part is looked up again if its state before the commit is needed.
        """
        missing = set(addresses) - self._before.keys()
        missing -= self._load_others(missing - self._own.keys() - self._searched)
        if not missing:
            return
        states = self._lake.find_states(missing, self._state, before)
        if before <= self._unknown_to:
            self._later |= self._lake.find_first_states(missing, self._state, self._unknown_to)
        self._before |= dict.fromkeys(missing) | states

    def _load_others(self, addresses: set[AddrStd]) -> set[AddrStd]:
        """Read the states of accounts in other parts; return the accounts that have any."""
        if self._others is None or not addresses:
            return set()
        self._searched |= addresses
        accounts = pa.array(sorted({address.account for address in addresses}), pa.binary(32))
        theirs = self._others.filter(pc.is_in(self._others["account"], value_set=accounts))
        read = _read_histories(theirs)
        found = addresses & read.keys()
        self._histories |= {address: read[address] for address in found}
        return found

    def load_cells(self, roots: Iterable[bytes | None]) -> None:
        """Load cells with all descendants; ``find_cell`` returns the ones that were found."""
        known = self._places, self._absent  # large: they are not copied
        missing = {root for root in roots if root and root not in known[0] and root not in known[1]}
        if not missing:
            return
        cells = self.finder.find_trees(missing, _find(self.tables, STATE_CELLS))
        for root in sorted(missing):
            try:
                append_packed(self._tree, root, cells, self._places)
            except (MissingCell, BocError):
                self._absent.add(root)

    def has_looked_up(self, *roots: bytes | None) -> bool:
        """Return whether cells were looked up, found or not."""
        return all(root in self._places or root is None or root in self._absent for root in roots)

    def find_cell(self, root: bytes | None) -> Cell | None:
        """Return a looked-up cell with its descendants; None if the lake lacks some."""
        place = None if root is None else self._places.get(root)
        return None if place is None else Cell(self._tree, place)


def _read_histories(states: pa.Table) -> dict[AddrStd, list[KnownAccount]]:
    """Return the last state of every account and masterchain block, in order."""
    histories: dict[AddrStd, dict[int, KnownAccount]] = {}
    for *values, _block_seqno in sorted(
        iter_tuples(states, (*STATE_COLUMNS, "block_seqno")), key=_ORDER
    ):
        state = KnownAccount(*values)
        histories.setdefault(state.address, {})[state.mc_seqno] = state
    return {address: list(history.values()) for address, history in histories.items()}


Params = dict[int, bytes]


class Network:
    """Configurations and libraries of one commit and of the lake before it."""

    def __init__(self, world: World, first: int) -> None:
        """Read them for the masterchain blocks from ``first`` on."""
        self._is_whole = world.is_whole(first)
        self._configs = _read_configs(world, first)
        self._version = _read_version(world)
        self._changes = _read_libraries(world, first)
        self._changed = sorted(
            {*self._configs, *(at for known in self._changes.values() for at, _ in known)}
        )
        self._joined: dict[int | None, NetworkConfig] = {}

    def find_era(self, mc_seqno: int) -> int:
        """Return a number of blocks with the same configuration and libraries."""
        return bisect_right(self._changed, mc_seqno)

    def find_config(self, mc_seqno: int) -> NetworkConfig:
        """Return the configuration after a block; only a version, if the lake has no key block."""
        since = max((at for at in self._configs if at <= mc_seqno), default=None)
        if since not in self._joined:
            alone = {VERSION_PARAM: make_version_param(self._version)}
            params = alone if since is None else self._configs[since]
            self._joined[since] = join_config(tuple(sorted(params.items())))
        return self._joined[since]

    def may_be_public(self, library: bytes, mc_seqno: int) -> bool:
        """Return whether a library is public after a block, or the lake does not know."""
        known = [change for change in self._changes.get(library, ()) if change[0] <= mc_seqno]
        if known:
            return max(known)[1]
        return not self._is_whole


def _read_configs(world: World, first: int) -> dict[int, Params]:
    columns = ("mc_seqno", "param", "boc")
    newest = next(world.list_rows(CONFIG_PARAMS.name, columns, first), [])
    last = max((row[0] for row in newest), default=0)
    rows = [row for row in newest if row[0] == last]
    rows += iter_tuples(_find(world.tables, CONFIG_PARAMS), columns)
    configs: dict[int, Params] = {}
    for mc_seqno, param, boc in rows:
        configs.setdefault(mc_seqno, {})[param] = boc
    return configs


def _read_version(world: World) -> int:
    """Return the highest global version that blocks of the commit were created with."""
    versions = _find(world.tables, BLOCKS)["gen_software_version"].to_pylist()
    return max(filter(None, versions), default=0)


def _read_libraries(world: World, first: int) -> dict[bytes, list[tuple[int, bool]]]:
    columns = ("mc_seqno", "hash", "present")
    rows = [row for file in world.list_rows(LIBRARIES.name, columns, first) for row in file]
    rows += iter_tuples(_find(world.tables, LIBRARIES), columns)
    changes: dict[bytes, list[tuple[int, bool]]] = {}
    for mc_seqno, library, present in rows:
        changes.setdefault(library, []).append((mc_seqno, present))
    return changes


def _find(tables: Mapping[str, pa.Table], table: Table) -> pa.Table:
    return tables.get(table.name, table.empty)

"""Reads the baseline of a lake: all accounts as of its first block, if that is not block 1.

An account that no block of the lake had touched before some block was the same all the time until
then. So the state after any block of the lake will do, as long as the node has it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa

from tonlake.ingest.assemble.chain import check_origin, masterchain_links
from tonlake.ingest.assemble.statecell import CellFinder, complete_states
from tonlake.ingest.blocks import BlockSource
from tonlake.ingest.decode.block.state import StateAt
from tonlake.ingest.decode.cell.packed import PackedCells
from tonlake.ingest.decode.wholestate import (
    Branch,
    WholeState,
    cut_branches,
    decode_accounts,
    load_branch,
)
from tonlake.ingest.derive.stages import STAGES, rebuild
from tonlake.ingest.errors import SourceError
from tonlake.ingest.run.workers import AT_END, Workers
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.source.node.statefile import NamedStates, OpenState, StateStore, find_states
from tonlake.ingest.span import Scope, Span
from tonlake.ingest.spread import HERE, Spread
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.commit.rewrite import Part, PartFolder, commit_baseline, open_parts
from tonlake.lake.duck.connection import connect
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import list_baseline_files, list_files_between
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import Baseline, LogState, read_state
from tonlake.lake.schema import ACCOUNT_STATES, BLOCKS, CONFIG_PARAMS, LIBRARIES, TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class StateTask(NamedTuple):
    """A part of a baseline to be written: its number, its accounts, the store of their cells."""

    number: int
    branch: Branch
    at: StateAt
    reopen: Callable[[], PackedCells]


class StateReader:
    """Writes parts of one baseline; close it after use."""

    def __init__(self, lake_dir: Path, folder: PartFolder, baseline: Baseline) -> None:
        self.lake_dir, self.folder, self.baseline = lake_dir, folder, baseline
        self._open = ExitStack()
        self._lake: DuckDBPyConnection | None = None
        self._reopen: Callable[[], PackedCells] | None = None
        self._store: PackedCells | None = None

    def close(self) -> None:
        """Close the lake and all stores."""
        self._open.close()

    def write(self, task: StateTask, store: PackedCells | None = None) -> Part:
        """Write a part unless a previous run did, and return it; ``store`` is an open store."""
        known = self.folder.read(task.number)
        if known is not None:
            return known
        decoded = list(self._decode(task, store or self._find_store(task)))
        accounts = sum(count for count, _tables in decoded)
        return self.folder.write(task.number, accounts, [tables for _count, tables in decoded])

    def _decode(
        self, task: StateTask, store: PackedCells
    ) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        only_active = self.baseline.accounts == "active"
        for branch, loaded in load_branch(store, task.branch):
            skip = self._find_touched(task.at.workchain, branch)
            yield decode_accounts(branch, loaded, task.at, skip, only_active=only_active)

    def _find_store(self, task: StateTask) -> PackedCells:
        if self._store is None or self._reopen != task.reopen:
            self._store = self._open.enter_context(closing(task.reopen()))
            self._reopen = task.reopen
        return self._store

    def _find_touched(self, workchain: int, branch: Branch) -> set[bytes]:
        """Return the accounts of a branch touched by lake blocks up to that of the state."""
        until = self.baseline.state_mc_seqno
        if until == self.baseline.mc_seqno:
            return set()
        if self._lake is None:
            snapshot = Snapshot(self.lake_dir, read_state(self.lake_dir))
            tables = [ACCOUNT_STATES.name]
            lake = connect(snapshot, self.folder.settings, tables=tables)
            self._lake = self._open.enter_context(closing(lake))
        first, last = branch.ends
        rows = self._lake.execute(
            "select distinct account from account_states where workchain = $workchain "
            "and account between $first and $last and mc_seqno > $at and mc_seqno <= $until",
            {"workchain": workchain, "first": first, "last": last}
            | {"at": self.baseline.mc_seqno, "until": until},
        )
        return {account for (account,) in rows.fetchall()}


def _write_in_worker(
    lake_dir: Path, folder: PartFolder, baseline: Baseline, task: StateTask
) -> Part:
    return _find_reader(lake_dir, folder, baseline).write(task)


@cache
def _find_reader(lake_dir: Path, folder: PartFolder, baseline: Baseline) -> StateReader:
    return AT_END.enter_context(closing(StateReader(lake_dir, folder, baseline)))


class BaselineReport(msgspec.Struct, frozen=True):
    """Report of a run: seqnos of the rows and of the state, and the number of rows by table."""

    mc_seqno: int
    state_mc_seqno: int
    accounts: str
    is_new: bool
    rows: dict[str, int]


class BaselineProgress(msgspec.Struct, frozen=True):
    """Number of accounts read so far, the finished share of the step, and its name."""

    accounts: int
    share: float
    step: str = "state"


def ingest_state(
    source: BlockSource,
    stores: Sequence[StateStore],
    lake_dir: Path,
    settings: IngestSections,
    *,
    at: int | None = None,
    accounts: str = "all",
    workers: Workers | None = None,
    on_progress: Callable[[BaselineProgress], None] = lambda _progress: None,
) -> BaselineReport:
    """Add the baseline of a lake from the first store that has it, and detect its contracts.

    ``at`` is the masterchain block after which the state is read. By default that is the block
    before the lake's first one (pruned blocks included); if its state is not stored, the newest
    block before the lake's first hole whose state is. ``accounts`` are "all" or "active" ones. If
    the lake already has the baseline, a killed run is completed; parts of the state that it has
    written are not read again.
    """
    state = read_state(lake_dir)
    is_new = isinstance(state.baseline, msgspec.UnsetType)
    if is_new:
        store, named = choose_states(source, stores, lake_dir, state, at)
        baseline = Baseline(state.ranges[0][0] - 1, named.mc_seqno, accounts)
        with (
            open_parts(lake_dir, state, settings.lake, baseline, named) as folder,
            closing(StateReader(lake_dir, folder, baseline)) as reader,
        ):
            parts = list(_StateReading(reader, state, workers).read(store, named, on_progress))
            commit_baseline(lake_dir, state, baseline, folder, parts)
        state = read_state(lake_dir)
    found = state.baseline
    if isinstance(found, msgspec.UnsetType):
        raise SourceError(f"{lake_dir}: another process changed the lake: run the command again")
    if at not in {None, found.state_mc_seqno}:
        raise SourceError(
            f"{lake_dir}: the lake already has a baseline, from the state after masterchain block"
            f" {found.state_mc_seqno}: use a new lake for another one"
        )
    _derive(lake_dir, state, found, settings, workers or HERE, on_progress)
    rows: dict[str, int] = {}
    for file in list_baseline_files(read_state(lake_dir), *TABLES):
        rows[file.table] = rows.get(file.table, 0) + file.rows
    return BaselineReport(found.mc_seqno, found.state_mc_seqno, found.accounts, is_new, rows)


def lacks_baseline(state: LogState) -> bool:
    """Return whether a lake that began after block 1 has no baseline, pruned blocks included."""
    return bool(state.ranges) and state.known_ranges[0][0] > 1 and state.baseline is msgspec.UNSET


def choose_states(
    source: BlockSource,
    stores: Sequence[StateStore],
    lake_dir: Path,
    state: LogState,
    at: int | None,
) -> tuple[StateStore, NamedStates]:
    """Choose the store and the states of a lake's baseline; see ``ingest_state``."""
    first, last = state.ranges[0]
    if not lacks_baseline(state):
        was_pruned = f" (blocks up to {first - 1} were pruned)" if first > 1 else ""
        raise SourceError(f"{lake_dir} begins with block 1{was_pruned}, so it takes no baseline")
    check_origin(source, lake_dir, state, Span(first, last))
    if at is not None and not first - 1 <= at <= last:
        raise SourceError(
            f"{lake_dir}: the state after masterchain block {at} cannot be used: the block must be"
            f" {first - 1}, the one before the lake's first, or a later one up to {last}"
        )
    kept = [store.list_kept(first - 1, last) for store in stores]
    wanted = [first - 1] if at is None else [at]
    tries = [(store, wanted) for store in stores]
    tries += zip(stores, kept, strict=True) if at is None else ()
    for store, seqnos in tries:
        named = find_states(source, store, seqnos)
        if named is not None:
            _check_chain(lake_dir, state, named)
            return store, named
    found = [seqno for seqnos in kept for seqno in seqnos]
    raise SourceError(
        f"the node has no complete state after masterchain block"
        f" {f'{first - 1} to {last}' if at is None else at}, together with the blocks that name it"
        + (f"; it has some of the states after {min(found)} to {max(found)}" if found else "")
    )


def _check_chain(lake_dir: Path, state: LogState, named: NamedStates) -> None:
    first = state.ranges[0][0]
    at = max(first, named.mc_seqno)
    (file, *_) = list_files_between(state, at, at, BLOCKS.name)
    link = masterchain_links(read_rows(lake_dir, file))[at]
    ours = link.root_hash if at == named.mc_seqno else link.prev_root_hash
    if ours is not None and ours != named.root_hash:
        raise SourceError(
            f"masterchain block {named.mc_seqno} of the node is {named.root_hash.hex()}, but the"
            f" one of the lake's chain is {ours.hex()}: this node follows another chain"
        )


class _StateReading:
    """Reads a whole state part by part, in this process or in several."""

    def __init__(self, reader: StateReader, state: LogState, workers: Workers | None) -> None:
        self._reader = reader
        self._state = state
        self._workers = workers
        self._numbers = count()
        self._accounts = 0

    def read(
        self, store: StateStore, named: NamedStates, on_progress: Callable[[BaselineProgress], None]
    ) -> Iterator[Part]:
        """Yield the parts of all shards: accounts in order, then configuration and libraries."""
        shards = len(named.states)
        for number, each in enumerate(named.states):
            with store.open(named, each) as opened:
                for part, share in self._read_accounts(opened):
                    yield part
                    on_progress(BaselineProgress(self._accounts, (number + share) / shards))
                if opened.top.workchain == MASTERCHAIN:
                    tables = self._read_network(opened.top, named.key_seqno)
                    yield self._reader.folder.write(next(self._numbers), 0, tables)
            on_progress(BaselineProgress(self._accounts, (number + 1) / shards))

    def _read_accounts(self, opened: OpenState) -> Iterator[tuple[Part, float]]:
        """Yield the parts of one shard, each with the share of its accounts read so far."""
        reader = self._reader
        at = opened.top.describe(reader.baseline.mc_seqno)
        write = partial(_write_in_worker, reader.lake_dir, reader.folder, reader.baseline)
        for order, each in enumerate(opened.parts):
            branches = cut_branches(each.store, each.accounts)
            tasks = [StateTask(next(self._numbers), branch, at, each.reopen) for branch in branches]
            parts: Iterator[Part] = (reader.write(task, each.store) for task in tasks)
            if self._workers is not None and len(tasks) > 1:
                parts = self._workers.map(write, tasks)
            for done, part in enumerate(parts, 1):
                self._accounts += part.accounts
                yield part, (order + done / len(tasks)) / len(opened.parts)

    def _read_network(self, state: WholeState, key_seqno: int) -> list[dict[str, pa.Table]]:
        """Return configuration and libraries, if the lake's blocks had not changed them by then."""
        tables = [CONFIG_PARAMS.name, LIBRARIES.name]
        reader, baseline = self._reader, self._reader.baseline
        snapshot = Snapshot(reader.lake_dir, self._state)
        found = []
        with closing(connect(snapshot, reader.folder.settings, tables=tables)) as lake:
            until = {"until": baseline.state_mc_seqno}
            changed = "select 1 from config_params where mc_seqno <= $until limit 1"
            if not lake.execute(changed, until).fetchall():
                found.append(state.decode_config(key_seqno))
            rows = lake.execute("select hash from libraries where mc_seqno <= $until", until)
            known = {library for (library,) in rows.fetchall()}
            found.append(state.decode_libraries(baseline.mc_seqno, known))
        return found


def _derive(
    lake_dir: Path,
    state: LogState,
    baseline: Baseline,
    settings: IngestSections,
    spread: Spread,
    on_progress: Callable[[BaselineProgress], None],
) -> None:
    """Derive what depends on the baseline: contracts of its accounts, and later rows."""
    states = list_baseline_files(state, ACCOUNT_STATES.name)
    accounts = sum(file.rows for file in states)
    within = [Span(*held) for held in state.known_ranges if held[1] >= baseline.mc_seqno]
    with closing(CellFinder(lake_dir, settings)) as cells:
        complete_states(lake_dir, settings.lake, cells, within)
    for stage in STAGES:
        if stage.follows_earlier and stage.enabled(settings):

            def show(done: int, ranges: int, stage: str = stage.name) -> None:
                on_progress(BaselineProgress(accounts, done / ranges, stage))

            scope = Scope(within=within, on_range=show, spread=spread)
            rebuild(stage.name, lake_dir, settings, scope)

"""Decodes one part of a whole state to files of a baseline, in any process."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.wholestate import decode_accounts, load_branch
from tonlake.ingest.run.process import AT_END
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import ACCOUNT_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from tonlake.ingest.decode.block.account import StateAt
    from tonlake.ingest.decode.cell.packed import CellStore
    from tonlake.ingest.decode.wholestate import Branch
    from tonlake.ingest.source.node.shardstate import ClosableStore
    from tonlake.lake.commit.baseline import Part, PartFolder
    from tonlake.lake.log.state import Baseline


class StateTask(NamedTuple):
    """A part of a baseline to be written: its number, its accounts, the store of their cells."""

    number: int
    branch: Branch
    at: StateAt
    reopen: Callable[[], ClosableStore]


class StateReader:
    """Writes parts of one baseline; close it after use."""

    def __init__(self, lake_dir: Path, folder: PartFolder, baseline: Baseline) -> None:
        """Open nothing yet."""
        self._lake_dir = lake_dir
        self._folder = folder
        self._baseline = baseline
        self._open = ExitStack()
        self._lake: DuckDBPyConnection | None = None
        self._reopen: Callable[[], ClosableStore] | None = None
        self._store: CellStore | None = None

    def close(self) -> None:
        """Close the lake and all stores."""
        self._open.close()

    def write(self, task: StateTask, store: CellStore | None = None) -> Part:
        """Write a part unless a previous run did, and return it; ``store`` is an open store.

        Raises:
            SourceError: a cell is missing or damaged.
            LakeError: the part cannot be written, or the lake cannot be read.
        """
        known = self._folder.read(task.number)
        if known is not None:
            return known
        parts: list[dict[str, pa.Table]] = []
        accounts = 0
        for count, tables in self._decode(task, store or self._find_store(task)):
            accounts += count
            parts.append(tables)
        return self._folder.write(task.number, accounts, parts)

    def _decode(
        self, task: StateTask, store: CellStore
    ) -> Iterator[tuple[int, dict[str, pa.Table]]]:
        only_active = self._baseline.accounts == "active"
        for branch, loaded in load_branch(store, task.branch):
            skip = self._find_touched(task.at.workchain, branch)
            yield decode_accounts(branch, loaded, task.at, skip, only_active=only_active)

    def _find_store(self, task: StateTask) -> CellStore:
        """Return the store of a task's cells; the last one stays open."""
        if self._store is None or self._reopen != task.reopen:
            self._store = self._open.enter_context(closing(task.reopen()))
            self._reopen = task.reopen
        return self._store

    def _find_touched(self, workchain: int, branch: Branch) -> set[bytes]:
        """Return the accounts of a branch touched by lake blocks up to that of the state."""
        until = self._baseline.state_mc_seqno
        if until == self._baseline.mc_seqno:
            return set()
        if self._lake is None:
            snapshot = Snapshot(self._lake_dir, read_state(self._lake_dir))
            tables = [ACCOUNT_STATES.name]
            lake = connect(snapshot, self._folder.settings, tables=tables)
            self._lake = self._open.enter_context(closing(lake))
        first, last = branch.ends
        rows = self._lake.execute(
            "select distinct account from account_states where workchain = $workchain "
            "and account between $first and $last and mc_seqno > $at and mc_seqno <= $until",
            {
                "workchain": workchain,
                "first": first,
                "last": last,
                "at": self._baseline.mc_seqno,
                "until": until,
            },
        )
        return {account for (account,) in rows.fetchall()}


def write_in_worker(
    lake_dir: Path, folder: PartFolder, baseline: Baseline, task: StateTask
) -> Part:
    """Write a part in a worker process, which keeps its stores open; see ``StateReader``."""
    return _find_reader(lake_dir, folder, baseline).write(task)


@cache
def _find_reader(lake_dir: Path, folder: PartFolder, baseline: Baseline) -> StateReader:
    return AT_END.enter_context(closing(StateReader(lake_dir, folder, baseline)))

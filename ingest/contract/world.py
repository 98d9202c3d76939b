"""What a commit knows of the chain: states of accounts at any of its blocks, their cells, and more.

Rows of the commit at hand come first; what they lack is looked up in the lake, as it is below the
commit's first masterchain block. So the answers are the same whenever a commit is derived again.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ingest.cell.record import append_packed
from ingest.cell.tree import CellTree
from ingest.contract.stack import Address, Cell
from ingest.errors import BocError, MissingCell
from lake.schema import ACCOUNT_STATES, STATE_CELLS
from lake.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import duckdb

    from ingest.statecell import CellFinder
    from lake.log import LogState
    from lake.settings import Settings

_STATE_COLUMNS = (
    *("workchain", "account", "mc_seqno", "last_trans_lt", "utime"),
    *("balance", "extra_currencies", "code_hash", "data_hash"),
)
_BLOCK_SEQNO = "block_seqno"


class AccountState(NamedTuple):
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
    def address(self) -> Address:
        """Whose state it is."""
        return Address(self.workchain, self.account)


class NotLoaded(Exception):
    """A state before the commit's blocks is needed, of an account not looked up so far."""

    def __init__(self, address: Address) -> None:
        """Name the account."""
        self.address = address
        super().__init__(str(address))


class World:
    """States and cells of one commit and of the lake before it; close it when done."""

    def __init__(
        self,
        lake_dir: Path,
        state: LogState,
        settings: Settings,
        finder: CellFinder,
        tables: Mapping[str, pa.Table],
    ) -> None:
        """Take the rows of a commit, and the lake as it is before them."""
        self.tables = tables
        self.finder = finder
        self._snapshot = Snapshot(lake_dir, state)
        self._settings = settings
        self._stack = ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._histories = _read_histories(tables.get(ACCOUNT_STATES.name))
        self._before: dict[Address, AccountState | None] = {}
        self._tree = CellTree()
        self._places: dict[bytes, int] = {}
        self._absent: set[bytes] = set()

    def close(self) -> None:
        """Let go of the lake."""
        self._stack.close()

    def ask_lake(self, query: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """Return the answer of the lake before the commit; nothing where there is none."""
        if not self._snapshot.number:
            return []
        if self._connection is None:
            tables = ["account_states", "config_params", "libraries"]
            opened = self._snapshot.connect(self._settings, tables=tables)
            self._connection = self._stack.enter_context(opened)
        return self._connection.execute(query, dict(parameters)).fetchall()

    def list_states(self) -> Iterator[AccountState]:
        """Yield the states of the commit, by account and masterchain block."""
        for history in self._histories.values():
            yield from history

    def find_state(self, address: Address, mc_seqno: int) -> AccountState | None:
        """Return the state of an account after a masterchain block; None where there is none.

        Raises:
            NotLoaded: it is one from before the commit, which ``load_states`` can bring.
        """
        history = self._histories.get(address, ())
        place = bisect_right(history, mc_seqno, key=lambda state: state.mc_seqno)
        if place:
            return history[place - 1]
        if address not in self._before:
            raise NotLoaded(address)
        return self._before[address]

    def load_states(self, addresses: Iterable[Address], before: int) -> None:
        """Look up the last states that accounts had before a masterchain block."""
        wanted = set(addresses) - self._before.keys()
        if not wanted:
            return
        rows = self.ask_lake(
            "select workchain, account, mc_seqno, last_trans_lt, utime, "
            "balance, extra_currencies, code_hash, data_hash from account_states "
            "where account in (select unnest($accounts)) and mc_seqno < $before "
            "qualify row_number() over ("
            "partition by workchain, account order by mc_seqno desc, block_seqno desc) = 1",
            {"accounts": sorted(address.account for address in wanted), "before": before},
        )
        states = (AccountState(*row) for row in rows)
        self._before |= dict.fromkeys(wanted)
        self._before |= {state.address: state for state in states if state.address in wanted}

    def load_cells(self, roots: Iterable[bytes | None]) -> None:
        """Look up whole cells; ``find_cell`` gives those that were found."""
        wanted = {root for root in roots if root is not None}
        wanted -= self._places.keys() | self._absent
        if not wanted:
            return
        fresh = self.tables.get(STATE_CELLS.name)
        cells = self.finder.find_trees(
            wanted, STATE_CELLS.arrow.empty_table() if fresh is None else fresh
        )
        for root in sorted(wanted):
            try:
                append_packed(self._tree, root, cells, self._places)
            except (MissingCell, BocError):
                self._absent.add(root)

    def find_cell(self, root: bytes | None) -> Cell | None:
        """Return a cell that was looked up, with all below it; None where the lake lacks some."""
        place = None if root is None else self._places.get(root)
        return None if place is None else Cell(self._tree, place)

    def keep_cell(self, cell: Cell) -> None:
        """Let ``find_cell`` find a cell that was made on the tree of those it gives."""
        self._places[cell.hash] = cell.root


def _read_histories(states: pa.Table | None) -> dict[Address, list[AccountState]]:
    """Return the last state of every account and masterchain block, in order."""
    histories: dict[Address, list[AccountState]] = {}
    if states is None:
        return histories
    order = [(name, "ascending") for name in ("workchain", "account", "mc_seqno", _BLOCK_SEQNO)]
    rows = states.select([*_STATE_COLUMNS, _BLOCK_SEQNO]).take(
        pc.sort_indices(states, sort_keys=order)
    )
    columns: list[list[Any]] = [rows[name].to_pylist() for name in _STATE_COLUMNS]
    for values in zip(*columns, strict=True):
        state = AccountState(*values)
        history = histories.setdefault(state.address, [])
        if history and history[-1].mc_seqno == state.mc_seqno:
            history.pop()
        history.append(state)
    return histories

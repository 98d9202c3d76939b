"""Caches account states and rows of small tables of a lake between commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain
from operator import and_, attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.assemble.statecell import LakeCache
from tonlake.ingest.derive.contract.stack import Address
from tonlake.ingest.settings import IngestSections
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import iter_tuples, read_rows
from tonlake.lake.index.newest import NewestStates
from tonlake.lake.log.place import list_files, list_files_between, read_place
from tonlake.lake.log.ranges import subtract_ranges
from tonlake.lake.log.state import Commit, DataFile, LogState
from tonlake.lake.schema import ACCOUNT_STATES
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
        """Address of the account."""
        return Address(self.workchain, self.account)


class KnownLake:
    """The lake as contract detection reads it; close it after use."""

    def __init__(self, lake_dir: Path, settings: IngestSections) -> None:
        self._lake_dir = lake_dir
        self._most = most = settings.ingest.cached_rows
        self._newest = _NewestCache(lake_dir, settings.lake, most)
        lake = lake_dir, settings.lake, ACCOUNT_STATES.name
        self._earlier = LakeCache[tuple[Address, int], AccountState](
            *lake, _ask_earlier, statement=_NEWEST, most=most
        )
        self._first = LakeCache[tuple[Address, int], tuple[AccountState, ...]](
            *lake, _ask_first, statement=_FIRST, most=most
        )

    def close(self) -> None:
        """Release the lake."""
        self._newest.close()
        self._earlier.close()
        self._first.close()

    def find_states(
        self, addresses: set[Address], state: LogState, before: int
    ) -> dict[Address, AccountState]:
        """Return the last state of each account before the masterchain block ``before``."""
        if not state.ranges or state.ranges[-1][1] < before:
            return self._newest.find(addresses, state)
        keys = {(address, before) for address in addresses}
        found = self._earlier.find(keys, state)
        return {address: row for (address, _before), row in found.items()}

    def find_first_states(
        self, addresses: set[Address], state: LogState, until: int
    ) -> dict[Address, tuple[AccountState, ...]]:
        """Return states of accounts up to a block: the first with each pair of code and data."""
        found = self._first.find({(address, until) for address in addresses}, state)
        return {address: row for (address, _until), row in found.items()}

    def learn(self, states: Mapping[Address, AccountState], commit: Commit) -> None:
        """Keep the newest states of a commit at the end of the chain."""
        if len(states) <= self._most:
            self._newest.learn(states, commit)

    def list_rows(
        self, state: LogState, table: str, columns: Sequence[str], before: int
    ) -> Iterator[Rows]:
        """Yield the rows before a block, file by file, newest file first.

        For tables with rows in few commits. The first column is the masterchain block.
        """
        files = list_files(state, table)
        for file in sorted(files, key=lambda file: read_place(file.path), reverse=True):
            if read_place(file.path).first < before:
                rows = [row for row in _read_file(self._lake_dir, file, columns) if row[0] < before]
                if rows:
                    yield rows


@lru_cache(_FILES_KEPT)
def _read_file(lake_dir: Path, file: DataFile, columns: Sequence[str]) -> Rows:
    """Return the rows of a file; files are immutable."""
    return list(iter_tuples(read_rows(lake_dir, file, columns), columns))


class _NewestCache(LakeCache[Address, AccountState]):
    """Newest states of accounts: from the index, and from files of blocks not yet indexed.

    Files do not tell which accounts they have, so all of them are read. A small number of rows,
    such as a follower adds between two segments, is held in memory; larger numbers are queried with
    SQL.
    """

    def __init__(self, lake_dir: Path, settings: LakeSettings, most: int) -> None:
        lake = lake_dir, settings, ACCOUNT_STATES.name
        super().__init__(*lake, _ask_newest, statement=_NEWEST, most=most)
        self._indexed = NewestStates(lake_dir)
        self._few = min(most, _FEW_ROWS)
        self._loose: LogState | None = None
        self._loose_states: dict[Address, AccountState] | None = None

    def close(self) -> None:
        super().close()
        self._loose = self._loose_states = None

    def _look_up(self, keys: set[Address], state: LogState) -> Mapping[Address, AccountState]:
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
            known = found.get(Address(*address))
            if known is None or known.mc_seqno < row.mc_seqno:
                at = self._read_utime(Address(*address), row, state) if utime is None else utime
                found[Address(*address)] = AccountState(*address, *_when(row), at, *_what(row))
        return found

    def _leave_out_indexed(self, state: LogState) -> LogState:
        """Return a state with only the files that have unindexed blocks."""
        pieces = subtract_ranges(state.known_ranges, self._indexed.open(state))
        found = (list_files_between(state, *piece, ACCOUNT_STATES.name) for piece in pieces)
        files = tuple(dict.fromkeys(chain.from_iterable(found)))
        return LogState(number=state.number, files=files, ranges=state.ranges)

    def _read_utime(self, address: Address, row: Any, state: LogState) -> int:  # noqa: ANN401 - a row
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


def _read_newest(lake_dir: Path, files: Iterable[DataFile]) -> dict[Address, AccountState]:
    """Return the newest state of every account in ``files``."""
    columns = (*STATE_COLUMNS, "block_seqno")
    rows = [ACCOUNT_STATES.empty.select(columns)]
    rows += (read_rows(lake_dir, file, columns) for file in files)
    order = [("mc_seqno", "ascending"), ("block_seqno", "ascending")]
    states = map(
        AccountState._make, iter_tuples(pa.concat_tables(rows).sort_by(order), STATE_COLUMNS)
    )
    return {state.address: state for state in states}


_NEWEST = """
with picked as (from account_states where account in (select unnest($accounts)))
select
    workchain, account, mc_seqno, last_trans_lt, utime,
    balance, extra_currencies, code_hash, data_hash
from states_as_of('picked', $before - 1)
"""
_NEWEST_OF_ONE = """
with picked as (from account_states where account = $account)
select
    workchain, account, mc_seqno, last_trans_lt, utime,
    balance, extra_currencies, code_hash, data_hash
from states_as_of('picked', $before - 1)
"""
_FIRST = """
select
    workchain, account, mc_seqno, last_trans_lt, utime,
    balance, extra_currencies, code_hash, data_hash
from account_states
where account in (select unnest($accounts)) and mc_seqno <= $until
qualify row_number() over (
    partition by workchain, account, code_hash, data_hash order by mc_seqno, block_seqno desc
) = 1
order by mc_seqno
"""
_NEVER = 1 << 62


def _ask_newest(connection: DuckDBPyConnection, keys: set[Address]) -> dict[Address, AccountState]:
    states = _read_before(connection, keys, _NEVER)
    return {address: state for address, state in states.items() if address in keys}


def _ask_earlier(
    connection: DuckDBPyConnection, keys: set[tuple[Address, int]]
) -> dict[tuple[Address, int], AccountState]:
    found: dict[tuple[Address, int], AccountState] = {}
    for before in {before for _address, before in keys}:
        addresses = {address for address, at in keys if at == before}
        states = _read_before(connection, addresses, before)
        found |= {(address, before): state for address, state in states.items()}
    return {key: found[key] for key in keys if key in found}


def _ask_first(
    connection: DuckDBPyConnection, keys: set[tuple[Address, int]]
) -> dict[tuple[Address, int], tuple[AccountState, ...]]:
    found: dict[tuple[Address, int], tuple[AccountState, ...]] = {}
    for until in {until for _address, until in keys}:
        accounts = sorted({address.account for address, at in keys if at == until})
        rows = connection.execute(_FIRST, {"accounts": accounts, "until": until})
        for row in rows.fetchall():
            state = AccountState(*row)
            found[state.address, until] = (*found.get((state.address, until), ()), state)
    return {key: found[key] for key in keys if key in found}


def _read_before(
    connection: DuckDBPyConnection, addresses: set[Address], before: int
) -> dict[Address, AccountState]:
    """Return the last states before a block of all accounts with the same account ids."""
    accounts = sorted({address.account for address in addresses})
    if len(accounts) == 1:  # the usual case at the tip; a third faster than a list of one
        rows = connection.execute(_NEWEST_OF_ONE, {"account": accounts[0], "before": before})
    else:
        rows = connection.execute(_NEWEST, {"accounts": accounts, "before": before})
    states = (AccountState(*row) for row in rows.fetchall())
    return {state.address: state for state in states}

"""Makes the events of signed blocks before a masterchain block commits them, and withdraws them.

Events of a signed block are confirmed and have no cursor: they are not replayed. The commit with
the block then gives the same events as finalized; if it has another block in its place, all traces
of the signed block that it lacks are withdrawn.
"""

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from pathlib import Path

from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.settings import Settings
from tonlake.api.stream.event import CONFIRMED, TYPES, Event, make_withdrawal
from tonlake.api.stream.rendering import Chunk, CommitRows, EventMaker, Members
from tonlake.api.text.encoding import render_raw
from tonlake.lake import schema
from tonlake.lake.account import BlockPlace, is_passed
from tonlake.lake.log.following import CONFIRMED_FILE, Confirmed, read_confirmed
from tonlake.queries.reader import Row

BlockKey = tuple[int, int, int, bytes]
"""Workchain, shard, seqno and root hash."""

Traces = dict[bytes, tuple[bytes | None, frozenset[str]]]
"""Traces of a block by id: norm, and accounts with transactions in the block."""

_SENT, _NEW = Chunk(0, 0, 0), Chunk(0, 1, 1)
"""Signed blocks whose events were made before, and all others."""

_MISSED_COMMITS = 100
"""Rows that are older than this many commits are no longer of interest."""

_TRANSACTION, _TRACE = itemgetter("workchain", "account", "lt"), itemgetter("trace_id")
_place = itemgetter("workchain", "shard", "block_seqno")
_name_block = itemgetter("workchain", "shard", "seqno", "root_hash")
_OWNERS = {
    schema.TRANSACTIONS.name: _TRANSACTION,
    schema.ACCOUNT_STATES.name: itemgetter("workchain", "account", "last_trans_lt"),
    schema.MESSAGES.name: itemgetter("tx_workchain", "tx_account", "tx_lt"),
    schema.TRANSACTION_TRACES.name: _TRANSACTION,
    schema.JETTON_WALLETS.name: _TRANSACTION,
    schema.TRACES.name: _TRACE,
    schema.ACTIONS.name: _TRACE,
}
"""The transaction, or the trace, that a row belongs to."""


class SignedRows(CommitRows):
    """The rows of signed blocks as two chunks, those of new blocks apart.

    A trace, with its actions, belongs to new blocks if any of its transactions does.
    """

    finality = CONFIRMED

    def __init__(self, lake_dir: Path, confirmed: Confirmed, new: Iterable[BlockKey]) -> None:
        super().__init__(lake_dir)
        rows = {name: table.to_pylist() for name, table in confirmed.tables.items()}
        self.after = confirmed.commit, rows[schema.BLOCKS.name][0]["mc_seqno"]
        """The commit that the rows follow, and the masterchain block that it lacks."""
        places = {key[:3] for key in new}
        transactions = rows.get(schema.TRANSACTIONS.name, [])
        owners = {_TRANSACTION(row) for row in transactions if _place(row) in places}
        members = rows.get(schema.TRANSACTION_TRACES.name, [])
        owners |= {row["trace_id"] for row in members if _TRANSACTION(row) in owners}
        self._split = {
            (chunk, name): [row for row in rows[name] if (owner(row) in owners) == (chunk is _NEW)]
            for name, owner in _OWNERS.items()
            for chunk in (_SENT, _NEW)
            if name in rows
        }
        for row in transactions:
            row["mc_seqno"] = None
        for row in rows.get(schema.ACTIONS.name, []):
            row["mc_seqno"] = 0

    def _read_table(self, chunk: Chunk, table: str) -> list[Row]:
        return self._split.get((chunk, table), [])


class SignedMaker(EventMaker):
    """Makes events of signed blocks, whose traces may have begun in blocks of the lake."""

    def __init__(
        self, rows: SignedRows, holder: SnapshotHolder, settings: Settings, committed: EventMaker
    ) -> None:
        """Take the rows, and the maker of events of commits, whose caches are used as well."""
        super().__init__(rows, holder, settings)
        self.norms = committed.norms
        self._committed, self._after = committed, rows.after

    def list_traces(self) -> dict[BlockPlace, Traces]:
        """Return the traces of each new block, by workchain, shard and seqno."""
        records = self._rows.records(_NEW)
        found: dict[BlockPlace, Traces] = {}
        for tx_hash, (trace_id, norm) in self.read_norms(_NEW).items():
            row = records[tx_hash].row
            traces = found.setdefault(_place(row), {})
            _norm, accounts = traces.get(trace_id, (norm, frozenset()))
            traces[trace_id] = norm, accounts | {render_raw(row["workchain"], row["account"])}
        return found

    def _list_back(self, chunk: Chunk, first: int) -> Iterator[Members]:
        yield self._write_members(chunk)
        yield self._write_members(_SENT)
        yield from self._committed.list_before(*self._after, first)


class ConfirmedBlocks:
    """The signed blocks whose events were sent; use it in one thread at a time."""

    def __init__(
        self,
        lake_dir: Path,
        rows: CommitRows,
        committed: EventMaker,
        holder: SnapshotHolder,
        settings: Settings,
    ) -> None:
        self._lake_dir, self._holder, self._settings = lake_dir, holder, settings
        self._rows, self._committed = rows, committed
        self._stamp: tuple[int, int] | None = None
        self._sent: dict[BlockKey, Traces] = {}

    def is_changed(self) -> bool:
        """Return whether the follower has written since the last call."""
        try:
            found = (self._lake_dir / CONFIRMED_FILE).stat()
        except FileNotFoundError:
            return False
        before, self._stamp = self._stamp, (found.st_ino, found.st_mtime_ns)
        return self._stamp != before

    def forget(self) -> None:
        """Forget what was sent: no client listens any more."""
        self._sent.clear()

    def make(self, types: Collection[str], newest: int) -> list[Event]:
        """Return events of the signed blocks that were not sent, nor committed up to ``newest``."""
        try:
            confirmed = read_confirmed(self._lake_dir)
        except FileNotFoundError:
            return []
        missed = range(confirmed.commit + 1, newest + 1)
        if len(missed) > _MISSED_COMMITS:
            return []
        chunks = [chunk for number in missed for chunk in self._rows.list_chunks(number)]
        passed = [key[:3] for key in self._list_blocks(chunks)]
        blocks = map(_name_block, confirmed.tables[schema.BLOCKS.name].to_pylist())
        new = [key for key in blocks if key not in self._sent and not is_passed(key[:3], passed)]
        if not new:
            return []
        rows = SignedRows(self._lake_dir, confirmed, new)
        maker = SignedMaker(rows, self._holder, self._settings, self._committed)
        traces = maker.list_traces()
        self._sent |= {key: traces.get(key[:3], {}) for key in new}
        events = [event for kind in TYPES if kind in types for event in maker.make(_NEW, kind)]
        for event in events:
            event.cursor = None
        return events

    def settle(self, number: int) -> list[Event]:
        """Return the withdrawals that follow from a commit, whose own events were sent."""
        if not self._sent:
            return []
        chunks = self._rows.list_chunks(number)
        committed = self._list_blocks(chunks)
        passed = [key[:3] for key in committed]
        finalized = {
            row["trace_id"]
            for chunk in chunks
            for row in self._rows.read(chunk, schema.TRANSACTION_TRACES.name)
        }
        withdrawn: dict[bytes, Event] = {}
        for key in [key for key in self._sent if is_passed(key[:3], passed)]:
            traces = self._sent.pop(key)
            for trace_id in traces.keys() - finalized if key not in committed else ():
                norm, accounts = traces[trace_id]
                withdrawn[trace_id] = make_withdrawal(norm, accounts, CONFIRMED, trace_id)
        for traces in self._sent.values():
            for trace_id in withdrawn.keys() & traces.keys():
                del traces[trace_id]
        return list(withdrawn.values())

    def _list_blocks(self, chunks: Iterable[Chunk]) -> set[BlockKey]:
        blocks = (self._rows.read(chunk, schema.BLOCKS.name) for chunk in chunks)
        return {_name_block(row) for rows in blocks for row in rows}

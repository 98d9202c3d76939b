"""A segment from rows: the rows of one range of masterchain blocks, account by account.

Rows come in parts, each with all rows of its accounts, the accounts ascending from part to part; so
that a range of any size is composed in the memory of one part and of the arrays of keys.
"""

from __future__ import annotations

import sys
from array import array
from itertools import groupby
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from tonlake.lake.file.values import iter_tuples, list_values
from tonlake.lake.index.segment.contracts import write_contracts
from tonlake.lake.index.segment.ends import EndsBuilder
from tonlake.lake.index.segment.file import SegmentWriter
from tonlake.lake.index.segment.postings import KEY_BYTES, count_cut_bits, cut_hash, write_postings
from tonlake.lake.index.segment.record import (
    ABORTED,
    FACT_COLUMNS,
    HASH_BEFORE,
    MESSAGE_COLUMNS,
    STATE_COLUMNS,
    TRANSACTION_COLUMNS,
    Around,
)
from tonlake.lake.index.segment.segment import ID_BYTES, pack_account, unpack_account
from tonlake.lake.index.segment.shape import RecordEncoder
from tonlake.lake.index.segment.traces import TracesBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.builder.gather import Source
    from tonlake.lake.log.state import Range


def compose(stream: IO[bytes], source: Source, parts: Iterable[Mapping[str, pa.Table]]) -> int:
    """Write the segment of a source's range, and return the number of transactions.

    ``parts`` are its base rows.
    """
    composer = Composer(stream)
    for part in parts:
        composer.add_part(part)
    return composer.finish(source.mc_range, source.read_ended(), source.read_contracts())


class _Transaction(NamedTuple):
    workchain: int
    account: bytes
    lt: int
    hash: bytes
    now: int
    mc_seqno: int
    account_state_hash_after: bytes
    columns: tuple[Any, ...]


class Composer:
    """Writes one segment; ``add_part`` for every part, then ``finish``."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Begin the file: the records come first, as they are the bulk."""
        self._writer = SegmentWriter(stream)
        self._writer.begin("records")
        self._encoder = RecordEncoder()
        self._record_at = array("q")
        self._hash, self._hash_after = bytearray(), bytearray()
        self._lt, self._now, self._mc_seqno = array("q"), array("q"), array("q")
        self._failed = array("I")
        self._account, self._account_row = bytearray(), array("q")
        self._balance, self._state_at, self._state = array("q"), array("q", [0]), bytearray()
        self._ends, self._traces = EndsBuilder(), TracesBuilder()

    def add_part(self, tables: Mapping[str, pa.Table]) -> None:
        """Add transactions, messages and account states of accounts after those added before."""
        states = _group_states(tables["account_states"])
        history = groupby(_list_transactions(tables["transactions"]), key=itemgetter(0, 1))
        messages = _group_messages(tables["messages"])
        self._traces.learn(tables["transaction_traces"])
        known = {account: list(rows) for account, rows in history}
        for account in sorted(known.keys() | states.keys(), key=itemgetter(1, 0)):
            self._add_account(account, known.get(account, []), states.get(account, {}), messages)

    def _add_account(
        self,
        account: AccountId,
        history: Iterable[_Transaction],
        states: dict[bytes, tuple[Any, ...]],
        messages: Mapping[bytes, list[tuple[Any, ...]]],
    ) -> None:
        self._account += pack_account(account)
        self._account_row.append(len(self._lt))
        before: _Transaction | None = None
        for row in history:
            self._add_transaction(row, before, states, messages.get(row.hash, []))
            before = row
        if states:
            newest = list(states.values())[-1]
            self._balance.append(newest[STATE_COLUMNS.index("balance")])
            self._state += self._encoder.encode_newest(
                _look_around(b"", 0 if before is None else before.lt, 0, before), newest
            )
        else:
            self._balance.append(0)
        self._state_at.append(len(self._state))

    def _add_transaction(
        self,
        row: _Transaction,
        before: _Transaction | None,
        states: Mapping[bytes, tuple[Any, ...]],
        messages: list[tuple[Any, ...]],
    ) -> None:
        number = len(self._lt)
        for place, message in enumerate(messages):
            self._ends.add(number, place, message)
        self._traces.add(row.hash)
        self._hash += row.hash
        self._hash_after += row.account_state_hash_after
        self._lt.append(row.lt)
        self._now.append(row.now)
        self._mc_seqno.append(row.mc_seqno)
        if row.columns[ABORTED]:
            self._failed.append(number)
        hash_before = row.columns[HASH_BEFORE]
        same = before is not None and before.account_state_hash_after == hash_before
        self._record_at.append(self._encoder.at)
        around = _look_around(row.account, row.lt, row.now, before)
        after = _facts(states.get(row.account_state_hash_after))
        facts = ... if same else _facts(states.get(hash_before))
        self._writer.write(
            self._encoder.encode_record(around, row.columns, messages, (facts, after))
        )

    def finish(
        self,
        mc_range: Range,
        ended: pa.Table,
        contracts: Iterable[tuple[str, pa.Table]] = (),
    ) -> int:
        """Write all arrays, and return the number of transactions.

        ``ended`` are the complete traces that end in the range, ``contracts`` rows of contracts
        and moves, in parts by the name of their table.
        """
        writer = self._writer
        self._account_row.append(len(self._lt))
        self._record_at.append(self._encoder.at)
        writer.add_numbers("record.at", self._record_at)
        writer.add("hash", self._hash)
        writer.add("hash_after", self._hash_after)
        writer.add_numbers("lt", self._lt)
        writer.add_numbers("now", self._now)
        writer.add_numbers("mc_seqno", self._mc_seqno)
        writer.add("account.id", self._account)
        writer.add_numbers("account.row", self._account_row)
        writer.add_numbers("state.at", self._state_at)
        writer.add("state", self._state)
        writer.add_numbers("balance", self._balance)
        writer.add_numbers("richest", self._order_by_balance())
        self._write_accounts()
        self._write_postings(ended)
        writer.add("shape", self._encoder.encode_shapes())
        write_contracts(writer, contracts)
        writer.finish(mc_range, len(self._lt))
        return len(self._lt)

    def _write_accounts(self) -> None:
        """Write the key of each account: they ascend, as accounts do."""
        cut_bits = count_cut_bits(len(self._balance))
        starts = range(0, len(self._account), ID_BYTES)
        keys = (cut_hash(self._account[at : at + KEY_BYTES]) >> cut_bits for at in starts)
        self._writer.add_numbers("account.key", array("q", keys), cut_bits)

    def _write_postings(self, ended: pa.Table) -> None:
        rows = array("I", range(len(self._lt)))
        hashes = array("Q", bytes(self._hash))[:: 32 // KEY_BYTES]
        if sys.byteorder == "little":
            hashes.byteswap()
        write_postings(self._writer, "transaction", {"key": hashes, "row": rows}, hashed=True)
        by_block = {"key": array("Q", self._mc_seqno), "lt": self._lt, "row": rows}
        write_postings(self._writer, "block", by_block)
        by_time = {
            "key": array("Q", map(self._now.__getitem__, self._failed)),
            "lt": array("q", map(self._lt.__getitem__, self._failed)),
            "row": self._failed,
        }
        write_postings(self._writer, "failed", by_time)
        self._ends.write(self._writer)
        self._traces.write(self._writer, hashes, self._lt)
        self._traces.write_ended(self._writer, self._encoder, ended, self._now)

    def _order_by_balance(self) -> array[int]:
        """Number the accounts that have a state, the richest first, as ``v3`` orders them."""
        sizes = zip(self._state_at, self._state_at[1:], strict=False)
        known = [number for number, (start, end) in enumerate(sizes) if end > start]

        def rank(number: int) -> tuple[int, int, bytes]:
            return -self._balance[number], *unpack_account(self._account, number)

        return array("q", sorted(known, key=rank))


def _look_around(account: bytes, lt: int, now: int, before: _Transaction | None) -> Around:
    if before is None:
        return Around(account, lt, lt, now, None, None)
    return Around(account, lt, before.lt, now, before.hash, before.account_state_hash_after)


def _facts(state: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return None if state is None else _pick_facts(state)


_pick_facts = itemgetter(*map(STATE_COLUMNS.index, FACT_COLUMNS))


def _list_transactions(table: pa.Table) -> list[_Transaction]:
    """Return transactions by account id, workchain and logical time."""
    fixed = iter_tuples(table, _Transaction._fields[:-1])
    rest = iter_tuples(table, TRANSACTION_COLUMNS)
    rows = (_Transaction._make((*head, columns)) for head, columns in zip(fixed, rest, strict=True))
    return sorted(rows, key=itemgetter(1, 0, 2))


def _group_messages(table: pa.Table) -> dict[bytes, list[tuple[Any, ...]]]:
    """Return messages by transaction hash, those of each by direction and place."""
    found: dict[bytes, list[tuple[Any, ...]]] = {}
    for tx_hash, message in zip(
        list_values(table["tx_hash"]), iter_tuples(table, MESSAGE_COLUMNS), strict=True
    ):
        found.setdefault(tx_hash, []).append(message)
    for messages in found.values():
        messages.sort(key=itemgetter(*_MESSAGE_ORDER))
    return found


_MESSAGE_ORDER = tuple(map(MESSAGE_COLUMNS.index, ("direction", "msg_index")))


def _group_states(table: pa.Table) -> dict[AccountId, dict[bytes, tuple[Any, ...]]]:
    """Return states by account and by hash, those of an account by the block they follow."""
    found: dict[AccountId, dict[bytes, tuple[Any, ...]]] = {}
    at = STATE_COLUMNS.index("hash")
    order = iter_tuples(table, ("mc_seqno", "block_seqno"))
    accounts = iter_tuples(table, ("workchain", "account"))
    rows = zip(order, accounts, iter_tuples(table, STATE_COLUMNS), strict=True)
    for _, account, row in sorted(rows, key=itemgetter(0)):
        states = found.setdefault(account, {})
        states.pop(row[at], None)
        states[row[at]] = row
    return found

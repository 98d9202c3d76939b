"""One run, open for reading: where keys are, and the records behind them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import msgspec

from lake.lookup.compose import STATE_COLUMNS, account_id, split_account_id
from lake.lookup.postings import Postings, cut_hash
from lake.lookup.record import (
    RECORDS_PER_BLOCK,
    SAME,
    decode_record,
    find_records,
    unpack_block,
)
from lake.lookup.traces import NO_TRACE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lake.lookup.compose import Account
    from lake.lookup.record import Record
    from lake.lookup.runfile import RunFile

Row = dict[str, Any]

_HASH_BYTES, _ID_BYTES = 32, 36
_decode_state = msgspec.msgpack.Decoder().decode


class Run:
    """The look-ups of one unbroken range of masterchain blocks."""

    def __init__(self, file: RunFile) -> None:
        """Take an open file."""
        arrays = file.arrays
        self.name = file.name
        self.first_mc_seqno = file.contents.first_mc_seqno
        self.last_mc_seqno = file.contents.last_mc_seqno
        self.lt, self.now, self.mc_seqno = arrays["lt"], arrays["now"], arrays["mc_seqno"]
        self.balance, self.richest = arrays["balance"], arrays["richest"]
        self.transaction, self.block = Postings(arrays, "transaction"), Postings(arrays, "block")
        self.message, self.body = Postings(arrays, "message"), Postings(arrays, "body")
        self.opcode, self.opcode_end = Postings(arrays, "opcode"), Postings(arrays, "opcode_end")
        self.trace = Postings(arrays, "trace")
        self._arrays = arrays
        self._hash, self._hash_after = arrays["hash"], arrays["hash_after"]
        self._account_key, self._account_row = arrays["account.key"], arrays["account.row"]

    def find_transaction(self, tx_hash: bytes) -> int | None:
        """Return the row of a transaction, or None."""
        start, end = self.transaction.find(cut_hash(tx_hash))
        for at in range(start, end):
            row: int = self.transaction.rows[at]
            if self.hash_of(row) == tx_hash:
                return row
        return None

    def hash_of(self, row: int) -> bytes:
        """Return the hash of the transaction in a row."""
        return bytes(self._hash[row * _HASH_BYTES : (row + 1) * _HASH_BYTES])

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row, as the run has it; None where it is not known."""
        root: int = self._arrays["root"][row]
        if root == NO_TRACE:
            return None
        if root < len(self.lt):
            return self.hash_of(root)
        at = (NO_TRACE - 1 - root) * _HASH_BYTES
        return bytes(self._arrays["other"][at : at + _HASH_BYTES])

    def find_account(self, account: bytes, workchain: int) -> int | None:
        """Return an account's number, or None."""
        key, wanted = cut_hash(account), account_id(account, workchain)
        at = bisect_left(self._account_key, key)
        while at < len(self._account_key) and self._account_key[at] == key:
            if self._id_of(at) == wanted:
                return at
            at += 1
        return None

    def account_of(self, number: int) -> Account:
        """Return the account of a number."""
        return split_account_id(self._id_of(number))

    def _id_of(self, number: int) -> bytes:
        return bytes(self._arrays["account.id"][number * _ID_BYTES : (number + 1) * _ID_BYTES])

    def rows_of(self, number: int) -> tuple[int, int]:
        """Return where the rows of an account begin and end; they ascend by logical time."""
        return self._account_row[number], self._account_row[number + 1]

    def state_of(self, number: int) -> Row | None:
        """Return the newest state of an account in the range, or None."""
        start, end = self._arrays["state.at"][number], self._arrays["state.at"][number + 1]
        if start == end:
            return None
        values = _decode_state(self._arrays["state"][start:end])
        return dict(zip(STATE_COLUMNS, values, strict=True))

    def read_records(self, rows: Iterable[int]) -> list[Record]:
        """Return the records of rows, in their order; neighbours are unpacked once."""
        reading = _Reading(self)
        return [reading.record(row) for row in rows]

    def read_record(self, row: int) -> Record:
        """Return the record of one row."""
        return self.read_records((row,))[0]

    def unpack(self, block: int) -> tuple[memoryview, int]:
        """Return the packed records of one block, and how many there are."""
        at, sizes = self._arrays["block.at"], self._arrays["block.size"]
        data = self._arrays["records"][at[block] : at[block + 1]]
        count = min(RECORDS_PER_BLOCK, len(self.lt) - block * RECORDS_PER_BLOCK)
        return unpack_block(data, sizes[block]), count

    def account_number(self, row: int) -> int:
        """Return the number of the account that a row belongs to."""
        return bisect_right(self._account_row, row) - 1

    def hash_after(self, row: int) -> bytes:
        """Return the hash of the account's state after the transaction in a row."""
        return bytes(self._hash_after[row * _HASH_BYTES : (row + 1) * _HASH_BYTES])


class _Reading:
    """Reads records of a run, and keeps the blocks and records that it has unpacked."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._blocks: dict[int, tuple[memoryview, list[int]]] = {}
        self._records: dict[int, Record] = {}
        self._account: tuple[int, int, bytes, int] = (0, 0, b"", 0)

    def record(self, row: int) -> Record:
        """Return the record of a row, complete."""
        run = self._run
        start, end, account, workchain = self._account
        if not start <= row < end:
            number = run.account_number(row)
            start, end = run.rows_of(number)
            account, workchain = run.account_of(number)
            self._account = (start, end, account, workchain)
        record = self._read(row, account)
        values = record.row
        values.workchain, values.account, values.lt = workchain, account, run.lt[row]
        values.now, values.mc_seqno = run.now[row], run.mc_seqno[row]
        values.hash = tx_hash = run.hash_of(row)
        values.account_state_hash_after = run.hash_after(row)
        values.trace_id = run.trace_of(row)
        if values.prev_trans_hash is SAME:
            values.prev_trans_hash = run.hash_of(row - 1)
        if values.account_state_hash_before is SAME:
            values.account_state_hash_before = run.hash_after(row - 1)
            record.before = self._read(row - 1, account).after
        lt = values.lt
        for message in record.messages:
            message.tx_hash, message.tx_lt = tx_hash, lt
        return record

    def _read(self, row: int, account: bytes) -> Record:
        record = self._records.get(row)
        if record is None:
            number, place = divmod(row, RECORDS_PER_BLOCK)
            if number not in self._blocks:
                unpacked, count = self._run.unpack(number)
                self._blocks[number] = unpacked, find_records(unpacked, count)
            block, starts = self._blocks[number]
            record = decode_record(block[starts[place] : starts[place + 1]], account)
            self._records[row] = record
        return record

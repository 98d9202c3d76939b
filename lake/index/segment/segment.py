"""An open segment: finds keys, and reads their records through the C extension."""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.segment.columns import read_columns
from tonlake.lake.index.segment.contracts import open_tables
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.places import open_places
from tonlake.lake.index.segment.postings import Postings, cut_hash
from tonlake.lake.index.segment.record import (
    BODY,
    IN_HASH,
    KINDS,
    MESSAGE_COLUMNS,
    MESSAGE_HASH,
    SHOWN_PLACES,
    Found,
    Member,
    Record,
)
from tonlake.lake.index.segment.traces import SegmentTraces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.segment.file import SegmentFile


_ARRAYS = (
    *("records", "record.at", "hash", "hash_after", "lt", "now", "mc_seqno", "root", "parent"),
    "other",
    *("account.row", "account.id", "state.at", "state", "ended.at", "ended.data"),
)

_Shape = tuple[int, bytes, tuple[Any, ...]]


def open_source(arrays: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the extension
    """Return a reader of the records of an open segment.

    Raises:
        ValueError: its shapes are damaged.
        KeyError: an array is missing.
    """
    named = tuple(getattr(arrays[name], "data", arrays[name]) for name in _ARRAYS)
    found, hashes = msgspec.msgpack.decode(
        arrays["shape"], type=tuple[list[_Shape], tuple[bytes, ...]]
    )
    if any(len(shape[1]) != len(shape[2]) for shape in found):
        raise ValueError("a shape of the segment is damaged")
    types = (*(kind.row_type for kind in KINDS), Record, Found, Member)
    widths = tuple(kind.width for kind in KINDS)
    places = IN_HASH, MESSAGE_HASH, BODY
    return NATIVE.Source(named, tuple(found), hashes, types, widths, places)


ID_BYTES = 36

_ID = struct.Struct(">32sI")
_SIGN = 1 << 31


def pack_account(account: AccountId) -> bytes:
    """Return 36 bytes that sort by account id, then by workchain."""
    return _ID.pack(account[1], account[0] + _SIGN)


def unpack_account(packed: bytearray | memoryview, number: int) -> AccountId:
    """Return account ``number`` of an array of packed accounts, 36 bytes each."""
    account, biased = _ID.unpack_from(packed, number * ID_BYTES)
    return biased - _SIGN, account


_HASH_BYTES = 32
_CONSUMERS_FORMAT = 15
"""Version of the layout from which on postings of messages prefer one of their ends."""

Filter = tuple[str, Any, Any]
"""A column of messages, its least and its greatest value; both None to match NULL."""


class AccountSegment:
    """Accounts of a segment, their rows and newest states; needs only some arrays of the file."""

    ARRAYS = frozenset((*_ARRAYS, "shape", "account.key"))

    def __init__(self, file: SegmentFile) -> None:
        """Take an open file.

        Raises:
            LakeCorrupt: it has another format, or its shapes are damaged.
        """
        self.name = file.name
        self.first_mc_seqno = file.contents.first_mc_seqno
        self.last_mc_seqno = file.contents.last_mc_seqno
        self._format = file.contents.format
        try:
            self._take(file.arrays)
        except (KeyError, ValueError, msgspec.DecodeError) as error:
            raise LakeCorrupt(file.name, f"it is not an index segment ({error})") from error

    def _take(self, arrays: dict[str, Any]) -> None:
        self._source = open_source(arrays)
        self.lt, self.now, self._id = arrays["lt"], arrays["now"], arrays["account.id"]
        self._account_key, self._account_row = arrays["account.key"], arrays["account.row"]

    def find_account(self, account: AccountId) -> int | None:
        """Return the number of an account, or None."""
        packed = pack_account(account)
        at = self._account_key.find(cut_hash(packed))
        while 0 <= at < len(self._account_key):
            found = bytes(self._id[at * ID_BYTES : (at + 1) * ID_BYTES])
            if found == packed:
                return int(at)
            if found > packed:
                break
            at += 1
        return None

    def rows_of(self, number: int) -> tuple[int, int]:
        """Return the start and end of an account's rows, which ascend by logical time."""
        start, end = self._account_row[number : number + 2]
        return start, end

    def newest_states(self, accounts: list[AccountId]) -> list[Any]:
        """Return the newest states of accounts; None for an account without one."""
        states: list[Any] = self._source.read_states(accounts)
        return states


class Segment(AccountSegment):
    """The index of one unbroken range of masterchain blocks."""

    def _take(self, arrays: dict[str, Any]) -> None:
        super()._take(arrays)
        self._hash, self.mc_seqno = arrays["hash"], arrays["mc_seqno"]
        self.balance, self.richest = arrays["balance"], arrays["richest"]
        self.transaction, self.block = Postings(arrays, "transaction"), Postings(arrays, "block")
        self.message, self.body = Postings(arrays, "message"), Postings(arrays, "body")
        self.opcode, self.failed = Postings(arrays, "opcode"), Postings(arrays, "failed")
        self.opcode_again = Postings(arrays, "opcode_again")
        self.body_again = Postings(arrays, "body_again")
        self.alone_to = Postings(arrays, "alone_to")
        self.alone_from = Postings(arrays, "alone_from")
        self.alone_lt = Postings(arrays, "alone_lt")
        self.alone_now = Postings(arrays, "alone_now")
        self.wait_lt, self.wait_s = arrays["wait"]
        self.trace, self.traces = Postings(arrays, "trace"), SegmentTraces(arrays, self._source)
        self.tables, self.places = open_tables(arrays), open_places(arrays)

    @property
    def leads_to_consumers(self) -> bool:
        """Whether postings of messages lead to who consumed them, where the segment has it."""
        return self._format >= _CONSUMERS_FORMAT

    @cached_property
    def lt_span(self) -> tuple[int, int]:
        """The least and the greatest logical time of the transactions; (0, 0) without any."""
        rows = self.block.rows
        ends = [(rows[first], rows[last - 1]) for first, last in self.block.list_spans()]
        return (
            min((self.lt[first] for first, _ in ends), default=0),
            max((self.lt[last] for _, last in ends), default=0),
        )

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

    def account_of(self, number: int) -> AccountId:
        """Return the account with a number."""
        return unpack_account(self._id, number)

    def rank_accounts(self, first: int, last: int) -> list[tuple[int, int, bytes]]:
        """Return balance, workchain and account of a range of ``richest``."""
        numbers = self.richest[first:last]
        balances = map(self.balance.__getitem__, numbers)
        accounts = map(self.account_of, numbers)
        return [(balance, *account) for balance, account in zip(balances, accounts, strict=True)]

    def read_records(self, rows: Sequence[int]) -> list[Any]:
        """Return the records of rows, in the same order."""
        records: list[Any] = self._source.read_records(rows)
        return records

    def list_trace(self, trace_id: bytes, first_lt: int, last_lt: int) -> list[Any]:
        """Return the ``Member`` of each transaction of a trace, in their order."""
        rows = self.trace.list_rows(cut_hash(trace_id))
        found: list[Any] = self._source.list_members(rows, trace_id, first_lt, last_lt, self)
        return found

    def read_lines(self, places: Sequence[tuple[int, int]]) -> list[Any]:
        """Return messages by row and place in its record."""
        lines: list[Any] = self._source.read_messages(places)
        return lines

    def choose_lines(
        self, places: Sequence[int] | Sequence[tuple[int, int]], filters: Iterable[Filter]
    ) -> list[Any]:
        """Return the ``Found`` of the messages that pass the filters.

        ``places`` are rows, for all of their messages, or pairs of row and place in its record.
        """
        columns = tuple((MESSAGE_COLUMNS.index(name), low, high) for name, low, high in filters)
        found: list[Any] = self._source.choose_messages(list(places), columns, SHOWN_PLACES, self)
        return found

    def read_columns(
        self, places: Sequence[tuple[int, int | bytes]], names: Sequence[str]
    ) -> pa.Table:
        """Return columns of messages, given by row and place, or by row and hash if unknown."""
        return read_columns(self._source, places, names)

    def find_other_ends(self, lines: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the other ends of messages, each with the index of its line."""
        others = self._find_others(lines)
        places = [(row, lines[number].msg_hash) for number, row in others]
        ends = self._source.read_messages(places) if places else []
        return [
            (number, end)
            for (number, _), end in zip(others, ends, strict=True)
            if end is not None  # of another hash with the same prefix
        ]

    def find_other_rows(self, lines: Sequence[Any]) -> list[int]:
        """Return the rows of the other ends of messages, and a few with the same hash prefix."""
        return [row for _, row in self._find_others(lines)]

    def _find_others(self, lines: Sequence[Any]) -> list[tuple[int, int]]:
        hashes, times = [line.msg_hash for line in lines], [line.tx_lt for line in lines]
        return self.message.find_others(self.lt, hashes, times)

    def moment_of(self, row: int) -> tuple[int, int]:
        """Return the unix seconds and the logical time of a row."""
        return self.now[row], self.lt[row]

    def account_number(self, row: int) -> int:
        """Return the number of the account of a row."""
        return bisect_right(self._account_row, row) - 1

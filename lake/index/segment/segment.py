"""An open segment: its accounts, transactions with their messages and states, and other tables."""

from __future__ import annotations

import mmap
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tonlake.lake.account import AccountId
from tonlake.lake.file.rows import item_bytes
from tonlake.lake.index.segment.declared import (
    ABSENT,
    ACCOUNT_STATES,
    ACCOUNTS,
    FACT_COLUMNS,
    FROM_PREVIOUS,
    INDEXED,
    MESSAGE_COLUMNS,
    MESSAGES,
    NO_LT,
    OF_MESSAGE,
    OWN,
    RECORD_COLUMNS,
    TRANSACTIONS,
    Facts,
    Indexed,
    Message,
    Record,
    State,
    Transaction,
    make_row,
    make_row_type,
)
from tonlake.lake.index.segment.file import HASH_BYTES, SegmentFile, SegmentWriter
from tonlake.lake.index.segment.rows import SegmentBags, SegmentRows, places_of, read_amounts

Numbers: TypeAlias = npt.NDArray[Any]

KEY_BYTES = 4
_KEY_MASK = (1 << 32) - 1
_LOW_BITS, _LOW_MASK, _GROUP_BITS = 16, (1 << 16) - 1, 6

_MAX_REPEATED = 1 / 3
"""Largest share of rows with the same key as the previous row for which keys are repeated."""


def list_keys(values: pa.Array) -> Numbers:
    """Return the keys of hashes or integers, none of which is NULL."""
    if not pa.types.is_fixed_size_binary(values.type):
        whole: Numbers = values.to_numpy()
        return whole.astype(np.uint32)
    return np.frombuffer(item_bytes(values), ">u4")[:: HASH_BYTES // KEY_BYTES].astype(np.uint32)


def write_postings(writer: SegmentWriter, name: str, values: pa.Array, rows: Numbers) -> None:
    """Write postings of values and rows, which are in order; rows without a value are left out.

    There are four arrays: ``<name>.key`` (sorted), ``<name>.end`` (the end of each key's rows),
    ``<name>.row`` and ``<name>.first``. The key of an integer is its low 32 bits. Hashes are in
    groups of some dozen keys by their first bits, and the next 16 are the key: so rows must be
    compared with the complete hash. ``first`` are the first keys of the groups, and the end. If
    most keys have one row, ``end`` is empty, and a key is repeated for each of its rows.
    """
    if values.null_count:
        rows = rows[values.is_valid().to_numpy(zero_copy_only=False)]
        values = values.drop_null()
    keys, bits = list_keys(values), 0
    is_hash = pa.types.is_fixed_size_binary(values.type)
    if is_hash:
        bits = min(_LOW_BITS, max(0, len(keys).bit_length() - _GROUP_BITS))
        keys >>= np.uint32(_LOW_BITS - bits)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    ends = np.flatnonzero(np.diff(keys, append=~keys[-1:])) + 1
    is_repeated = len(keys) - len(ends) > _MAX_REPEATED * len(keys)
    keys, ends = (keys[ends - 1], ends) if is_repeated else (keys, ends[:0])
    firsts = np.array([0, len(keys)])
    if is_hash:
        firsts = np.searchsorted(keys >> _LOW_BITS, np.arange((1 << bits) + 1))
        keys = keys.astype(np.uint16)
    writer.add(f"{name}.first", pa.array(firsts, pa.uint32()))
    writer.add(f"{name}.key", pa.array(keys))
    writer.add(f"{name}.end", pa.array(ends, pa.uint32()))
    writer.add(f"{name}.row", pa.array(rows, pa.uint32()))


class Postings:
    """Postings of a segment, open for reading: for each key, the rows that have it, in order."""

    def __init__(self, file: SegmentFile, name: str) -> None:
        """Take the arrays of an open segment."""
        self._keys, self._ends = file.numbers(f"{name}.key"), file.numbers(f"{name}.end")
        self._rows, self._firsts = file.numbers(f"{name}.row"), file.numbers(f"{name}.first")
        self._shift = _LOW_BITS - (len(self._firsts) - 1).bit_length() + 1

    def find(self, value: bytes | int) -> Sequence[int]:
        """Return the rows that may have a hash or an integer, in order: those of its key."""
        group, key = 0, value
        if isinstance(key, int):
            key &= _KEY_MASK
        else:
            key = int.from_bytes(key[:KEY_BYTES], "big") >> self._shift
            group, key = key >> _LOW_BITS, key & _LOW_MASK
        first, last = self._firsts[group], self._firsts[group + 1]
        at = bisect_left(self._keys, key, first, last)
        if at == last or self._keys[at] != key:
            return ()
        if not len(self._ends):
            return self._rows[at : bisect_right(self._keys, key, at, last)]
        return self._rows[self._ends[at - 1] if at else 0 : self._ends[at]]


class SegmentTable:
    """Finds rows by keys, in orders, and reads their copies."""

    def __init__(self, file: SegmentFile, table: Indexed, rows: SegmentRows) -> None:
        """Take the arrays of an open segment."""
        self._rows = rows
        self._ends, self._start = file.rows(f"{table.name}.rows")
        self.numbers = {name: file.numbers(f"{table.name}.{name}") for name in table.numbers}
        lengths = [len(self._ends) - 1, *map(len, self.numbers.values())]
        self.count = max(lengths)
        self.orders = {
            order[0]: file.numbers(f"{table.name}.by_{order[0]}") for order in table.orders
        }
        self.postings = {
            name: Postings(file, f"{table.name}.{name}") for name in (*table.hashes, *table.keys)
        }
        self._copied = copied = table.copied
        self._hash_places = places_of(table.name, copied, "hash")
        self._list_places = places_of(table.name, copied, "hashes")
        self._amount_places = places_of(table.name, copied, "amount")
        self._absent = [(numbers, ABSENT[numbers.format]) for numbers in self.numbers.values()]
        self._type = make_row_type(table.name, table.columns)

    def read_copies(self, rows: Iterable[int]) -> Iterator[list[Any]]:
        """Yield the copies of rows, as they were encoded."""
        return self._rows.read(self._ends, self._start, rows)

    def peek(self, rows: Iterable[int], *columns: str) -> Iterator[list[Any]]:
        """Yield columns of copies of rows as they were encoded, which are not of hashes."""
        places = [self._copied.index(name) for name in columns]
        for values in self.read_copies(rows):
            yield [values[at] for at in places]

    def read_values(self, rows: Sequence[int]) -> list[list[Any]]:
        """Return the columns of rows, in the order of the declaration."""
        if not rows:
            return []
        found = list(self.read_copies(rows))
        self._rows.fill(found, self._hash_places)
        for at in self._list_places:
            for values in found:
                if values[at] is not None:
                    values[at] = list(map(self._rows.hash_of, values[at]))
        read_amounts(found, self._amount_places)
        for numbers, absent in self._absent:
            for row, values in zip(rows, found, strict=True):
                number = numbers[row]
                values.append(None if number == absent else number)
        return found

    def read(self, rows: Iterable[int]) -> list[Any]:
        """Return rows, in the same order."""
        return [make_row(self._type, values) for values in self.read_values(list(rows))]


PARTS_AT, PARTS = RECORD_COLUMNS.index("messages"), 3
"""Where the messages of a transaction, and the states around it, are in its list."""

_LT_AT, _TIME_AT, _DIRECTION, _MSG_HASH, _SOURCE, _DESTINATION = map(
    MESSAGE_COLUMNS.index,
    ("created_lt", "created_at", "direction", "msg_hash", "source", "destination"),
)
_OF_MESSAGE = [MESSAGE_COLUMNS.index(name) for name in OF_MESSAGE]
_DATA, _ACTIONS = FACT_COLUMNS.index("data_hash"), RECORD_COLUMNS.index("action_list_hash")
_TRACE_AT = RECORD_COLUMNS.index("trace_id")
_PREVIOUS, _IN_HASH, _LT_BEFORE, _STATE_BEFORE = map(
    RECORD_COLUMNS.index, ("prev_trans_hash", "in_msg_hash", *FROM_PREVIOUS)
)
_HASHES = (*places_of(TRANSACTIONS.name, RECORD_COLUMNS, "hash"), _TRACE_AT)
_AMOUNTS = places_of(TRANSACTIONS.name, RECORD_COLUMNS, "amount")
_MESSAGE_HASHES = places_of(MESSAGES.name, MESSAGE_COLUMNS, "hash")
_MESSAGE_AMOUNTS = places_of(MESSAGES.name, MESSAGE_COLUMNS, "amount")
_FACT_HASHES = places_of(ACCOUNT_STATES.name, FACT_COLUMNS, "hash")


CODE_UNKNOWN, CODE_ABSENT, CODE_FIRST = range(3)
"""In place of a code's number: no state, a state without code; and the first number."""


_VALUE = np.dtype(f"V{HASH_BYTES}")

_MANY = 32
"""From this many on, accounts are found faster together than one by one."""


class SegmentAccounts:
    """The accounts of a segment by number, in the order of their ids, and their rows in tables."""

    def __init__(self, file: SegmentFile, rows: SegmentRows) -> None:
        """Take the arrays of an open segment."""
        self._keys, self.rows = file.numbers("account.key"), rows
        self.workchains = file.numbers("account.workchain")
        self.ids = file.numbers("account.hash")
        """The number of each account's id among the 32-byte values."""
        self._ends = {name: file.numbers(f"account.{name}") for name in ACCOUNTS}
        self._transactions = file.numbers("account.transaction")
        self.codes = file.numbers("account.code")
        """The number of each account's newest code hash, counted from ``CODE_FIRST``."""

    def account_of(self, number: int) -> AccountId:
        """Return an account by its number."""
        return self.workchains[number], self.rows.hash_of(self.ids[number])

    def find(self, account: AccountId) -> int | None:
        """Return the number of an account, or None."""
        workchain, account_id = account
        key = int.from_bytes(account_id[:KEY_BYTES], "big")
        keys = self._keys
        at = bisect_left(keys, key)
        while at < len(keys) and keys[at] == key:
            if self.workchains[at] == workchain and self.rows.hash_of(self.ids[at]) == account_id:
                return at
            at += 1
        return None

    def find_all(self, accounts: Sequence[AccountId]) -> list[int | None]:
        """Return the numbers of accounts, in the same order; None for those that it lacks."""
        if len(accounts) < _MANY or not len(self.ids):
            return list(map(self.find, accounts))
        wanted = np.frombuffer(b"".join([account for _, account in accounts]), _VALUE)
        keys = wanted.view(">u4")[:: HASH_BYTES // KEY_BYTES].astype(np.uint32)
        known, ids, last = np.asarray(self._keys), np.asarray(self.ids), len(self.ids) - 1
        places = np.minimum(known.searchsorted(keys), last)
        is_it = np.frombuffer(self.rows.values, _VALUE)[ids[places]] == wanted
        is_it &= np.asarray(self.workchains)[places] == [workchain for workchain, _ in accounts]
        may_follow = known[np.minimum(places + 1, last)] == keys
        found = zip(accounts, *(each.tolist() for each in (places, is_it, may_follow)), strict=True)
        return [
            at if is_there else self.find(account) if may_be else None
            for account, at, is_there, may_be in found
        ]

    def rows_of(self, table: str, number: int) -> range:
        """Return the rows of an account in a table that is sorted by account."""
        ends = self._ends[table]
        return range(ends[number - 1] if number else 0, ends[number])

    def transactions_of(self, number: int) -> Sequence[int]:
        """Return the rows of an account's transactions, which ascend by logical time."""
        places = self.rows_of(TRANSACTIONS.name, number)
        return self._transactions[places.start : places.stop]

    def place_of(self, number: int, row: int) -> int:
        """Return the place of an account's transaction in the order of accounts."""
        places = self.rows_of(TRANSACTIONS.name, number)
        return bisect_left(self._transactions, row, places.start, places.stop)


class Segment:
    """The index of one unbroken range of masterchain blocks; tables are opened on demand."""

    def __init__(self, file: SegmentFile) -> None:
        """Take an open file; a lacking array raises LakeCorrupt when it is first used."""
        self._file = file
        self.first_mc_seqno, self.last_mc_seqno = file.mc_range
        self.rows = SegmentRows(file)
        self.accounts = SegmentAccounts(file, self.rows)
        self.opened: dict[str, SegmentTable] = {}
        """The tables that are open."""

    def unmap_pages(self) -> None:
        """Let go of the pages of the file that were read; they are mapped again when needed."""
        if isinstance(self._file.data, mmap.mmap):
            self._file.data.madvise(mmap.MADV_DONTNEED)

    def table(self, name: str) -> SegmentTable:
        """Return a table."""
        table = self.opened.get(name)
        if table is None:
            table = self.opened[name] = SegmentTable(self._file, INDEXED[name], self.rows)
        return table

    @cached_property
    def transactions(self) -> SegmentTransactions:
        """The transactions."""
        return SegmentTransactions(self._file, self.table(TRANSACTIONS.name), self.accounts)

    @cached_property
    def messages(self) -> SegmentMessages:
        """The messages."""
        return SegmentMessages(self._file, self.table(MESSAGES.name), self.transactions)

    def newest_states(self, accounts: Sequence[AccountId]) -> dict[AccountId, Any]:
        """Return the newest states of accounts; those without one are left out."""
        last: dict[AccountId, int] = {}
        for account, number in zip(accounts, self.accounts.find_all(accounts), strict=True):
            rows = () if number is None else self.accounts.rows_of(ACCOUNT_STATES.name, number)
            if rows:
                last[account] = rows[-1]
        found = self.table(ACCOUNT_STATES.name).read_values(list(last.values()))
        return {
            account: make_row(State, (*values, *account))
            for account, values in zip(last, found, strict=True)
        }

    def newest_codes(self, accounts: Sequence[AccountId]) -> dict[AccountId, bytes | None]:
        """Return the code hashes, or None, in the newest states of those accounts that have any."""
        codes, hash_of = self.accounts.codes, self.rows.hash_of
        found: dict[AccountId, bytes | None] = {}
        for account, number in zip(accounts, self.accounts.find_all(accounts), strict=True):
            code = CODE_UNKNOWN if number is None else codes[number]
            if code != CODE_UNKNOWN:
                found[account] = None if code == CODE_ABSENT else hash_of(code - CODE_FIRST)
        return found

    @cached_property
    def ranked(self) -> tuple[memoryview, memoryview]:
        """The newest balances in the segment, highest first, and the numbers of their accounts."""
        return self._file.numbers("balance"), self._file.numbers("balance.account")

    @cached_property
    def longest_trace(self) -> Sequence[int]:
        """The longest durations of a complete trace, in logical time and in Unix seconds."""
        return self._file.numbers("trace.longest")


class SegmentTransactions:
    """The transactions of a segment by masterchain block, then logical time and account."""

    def __init__(self, file: SegmentFile, table: SegmentTable, accounts: SegmentAccounts) -> None:
        """Take parts of an open segment, not the segment: a circle of objects is freed late."""
        self._table, self._rows, self._accounts = table, accounts.rows, accounts
        self.hash_of = accounts.rows.hash_of
        """Returns the hash of a row: those of all transactions come first among the hashes."""
        self.lt, self.now = self._table.numbers["lt"], self._table.numbers["now"]
        self.accounts = file.numbers("transactions.account")
        """The number of each row's account."""
        self._traces, self._parents = (
            file.numbers(f"transactions.{name}") for name in ("trace", "parent")
        )
        self._states = file.numbers("transactions.state")
        self._bags = SegmentBags(file)
        self._by_hash = Postings(file, "transactions.hash")
        self._by_trace = Postings(file, "transactions.trace_id")
        self.failed = file.numbers("transactions.failed")
        self.block_seqnos = file.numbers("block.mc_seqno")
        self.block_ends = file.numbers("block.end")
        self._seqnos, self._ends = np.asarray(self.block_seqnos), np.asarray(self.block_ends)
        self._block_spans = {
            name: (file.numbers(f"block.first_{name}"), file.numbers(f"block.last_{name}"))
            for name in ("lt", "now")
        }

    @cached_property
    def block_edges(self) -> dict[str, tuple[array[int], array[int]]]:
        """By moment: the last one up to each block, and the first one from each block on."""
        return {
            name: (
                array("q", accumulate(lasts, max)),
                array("q", accumulate(reversed(firsts), min))[::-1],
            )
            for name, (firsts, lasts) in self._block_spans.items()
        }

    def find(self, tx_hash: bytes) -> int | None:
        """Return the row of a transaction, or None."""
        for row in self._by_hash.find(tx_hash):
            if self._rows.hash_of(row) == tx_hash:
                return row
        return None

    def list_block(self, mc_seqno: int) -> range:
        """Return the rows of a masterchain block."""
        at = bisect_left(self.block_seqnos, mc_seqno)
        if at == len(self.block_seqnos) or self.block_seqnos[at] != mc_seqno:
            return range(0)
        return self.rows_of_block(at)

    def rows_of_block(self, at: int) -> range:
        """Return the rows of the masterchain block at an index of ``block_seqnos``."""
        return range(self.block_ends[at - 1] if at else 0, self.block_ends[at])

    def list_trace(self, trace_id: bytes) -> list[int]:
        """Return the rows of a trace."""
        rows, traces = self._by_trace.find(trace_id), self._traces
        for row in rows:
            if self.trace_of(row) == trace_id:
                return [each for each in rows if traces[each] == traces[row]]
        return []

    def account_of(self, row: int) -> AccountId:
        """Return the account of a row."""
        return self._accounts.account_of(self.accounts[row])

    def trace_of(self, row: int) -> bytes | None:
        """Return the trace id of a row; None if unknown."""
        number = self._traces[row]
        return self.hash_of(number - 1) if number else None

    def parent_of(self, row: int) -> bytes | None:
        """Return the hash of the sender of a row's inbound message; None if unknown."""
        number = self._parents[row]
        return self.hash_of(number - 1) if number else None

    def read_lists(self, rows: Sequence[int]) -> list[list[Any]]:
        """Return records as lists of ``RECORD_COLUMNS``, in the same order.

        32-byte values are numbers of ``rows.values``; amounts of more than 63 bits are text.
        """
        found = list(self._table.read_copies(rows))
        accounts, traces, lts, times = self.accounts, self._traces, self.lt, self.now
        workchains, ids, states = self._accounts.workchains, self._accounts.ids, self._states
        seqnos = self._seqnos[self._ends.searchsorted(np.array(rows, self._ends.dtype), "right")]
        for row, values, seqno in zip(rows, found, seqnos.tolist(), strict=True):
            lt, now, trace, after = lts[row], times[row], traces[row], states[row]
            if values[_LT_BEFORE] is None:
                values[_LT_BEFORE] = lts[values[_PREVIOUS]]
            if values[_STATE_BEFORE] is None:
                values[_STATE_BEFORE] = states[values[_PREVIOUS]]
            number, lines = accounts[row], values[PARTS_AT]
            account, trace_id = ids[number], trace - 1 if trace else None
            _fill_lines(lines, lt, now, account, after)
            _add(values, _ACTIONS, after)
            for facts in values[PARTS_AT + 1 : PARTS_AT + PARTS]:
                if facts is not None:
                    _add(facts, _DATA, after)
            if values[_IN_HASH] is None and lines and lines[0][_DIRECTION] == "in":
                values[_IN_HASH] = lines[0][_MSG_HASH]
            columns = (lt, now, row, workchains[number], account, seqno, trace_id, after)
            values.extend(columns)
        return found

    def complete(self, lists: Sequence[list[Any]]) -> list[Record]:
        """Return the records of lists that ``read_lists`` returned."""
        every = [line for values in lists for line in values[PARTS_AT]]
        states = [state for values in lists for state in values[PARTS_AT + 1 : PARTS_AT + PARTS]]
        read_amounts(lists, _AMOUNTS)
        read_amounts(every, _MESSAGE_AMOUNTS)
        self._rows.fill(lists, _HASHES)
        self._rows.fill(every, _MESSAGE_HASHES)
        # A state of an earlier segment is a row already.
        self._rows.fill([state for state in states if type(state) is list], _FACT_HASHES)
        records = []
        for values in lists:
            lines, before, after = values[PARTS_AT : PARTS_AT + PARTS]
            del values[PARTS_AT : PARTS_AT + PARTS]
            row = make_row(Transaction, values)
            messages = [make_row(Message, (*line, row.hash, row.lt, None, None)) for line in lines]
            around = (
                make_row(Facts, state) if type(state) is list else state
                for state in (before, after)
            )
            records.append(make_row(Record, (row, messages, *around)))
        return records

    def read_bags(self, rows: Sequence[int], records: Iterable[Record]) -> list[bytes | None]:
        """Return the bags of cells of rows, whose records are known, in the same order."""
        place_of, accounts = self._accounts.place_of, self.accounts
        return self._bags.read([place_of(accounts[row], row) for row in rows], records)

    def read_messages(self, places: Sequence[tuple[int, int, int]]) -> list[list[Any]]:
        """Return messages as lists, by row, likely place in the transaction, and number of hash."""
        rows = dict.fromkeys(row for row, _, _ in places)
        copies = zip(rows, self._table.read_copies(rows), strict=True)
        parts = {row: values[PARTS_AT] for row, values in copies}  # the rest is freed at once
        ids, accounts, states = self._accounts.ids, self.accounts, self._states
        lines = [_find_line(parts[row], place, own - states[row]) for row, place, own in places]
        lts, times = self.lt, self.now
        for (row, _, _), line in zip(places, lines, strict=True):
            _fill_lines((line,), lts[row], times[row], ids[accounts[row]], states[row])
        self._rows.fill(lines, _MESSAGE_HASHES)
        read_amounts(lines, _MESSAGE_AMOUNTS)
        return lines


def _find_line(lines: Sequence[list[Any]], place: int, own: int) -> list[Any]:
    """Return the message whose hash has a relative number, which is likely to be at a place."""
    if place < len(lines) and lines[place][_MSG_HASH] == own:
        return lines[place]
    return next(line for line in lines if line[_MSG_HASH] == own)


def _add(values: list[Any], at: int, base: int) -> None:
    """Replace a number that may be relative to another one."""
    number = values[at]
    if number is not None and number < 0:
        values[at] = base - number


def _fill_lines(lines: Iterable[list[Any]], lt: int, now: int, account: int, after: int) -> None:
    """Fill in what messages have relative to their transaction; hashes are numbers."""
    for line in lines:
        own = line[_MSG_HASH] = line[_MSG_HASH] + after
        for at in _OF_MESSAGE:
            number = line[at]
            if number is not None and number < 0:
                line[at] = own - number
        if line[_LT_AT] is not None:
            line[_LT_AT] += lt
            line[_TIME_AT] += now
        if line[_SOURCE] == OWN:
            line[_SOURCE] = account
        if line[_DESTINATION] == OWN:
            line[_DESTINATION] = account


ENDS = ("in", "out")
"""The ends of a message: the transaction that consumed it, and the one that sent it."""


class SegmentMessages:
    """The messages of a segment with the transactions at their ends, a row for each consumer."""

    def __init__(
        self, file: SegmentFile, table: SegmentTable, transactions: SegmentTransactions
    ) -> None:
        """Take parts of an open segment."""
        self.table, self._transactions = table, transactions
        self.ends = {end: file.numbers(f"messages.{end}") for end in ENDS}
        """The rows of the transactions at each end of messages, counted from 1; 0: none."""
        self._places, self.hashes = file.numbers("messages.place"), file.numbers("messages.hash")
        """The number of each message's hash."""

    def hash_of(self, number: int) -> bytes:
        """Return the hash of a message."""
        return self._transactions.hash_of(self.hashes[number])

    def is_whole(self, number: int, *, is_only: bool) -> bool:
        """Return whether a message has no ends but those in its row, the sender's before.

        ``is_only``: whether no other segment may have some. An external message may be consumed
        more than once; equal hashes are neighbours.
        """
        ends, hashes, lts = self.ends, self.hashes, self._transactions.lt
        consumed, sent = ends["in"][number], ends["out"][number]
        if consumed and sent:
            if lts[sent - 1] >= lts[consumed - 1]:
                return False
            if self.table.numbers["created_lt"][number] != NO_LT:
                return True
        near = hashes[number - 1], hashes[(number + 1) % len(hashes)]
        return is_only and hashes[number] not in near

    def find(self, msg_hash: bytes) -> list[int]:
        """Return the rows of messages by hash, as stored."""
        rows, hashes = self.table.postings["msg_hash"].find(msg_hash), self.hashes
        known = (hashes[number] for number in rows if self.hash_of(number) == msg_hash)
        own = next(known, None)
        return [number for number in rows if hashes[number] == own]

    def find_any(self, msg_hash: bytes) -> list[int]:
        """Return the rows of messages by hash, as stored or normalized."""
        rows = self.table.postings["hash_norm"].find(msg_hash)
        lines = zip(rows, self.read(rows), strict=True)
        normalized = {number for number, line in lines if line.hash_norm == msg_hash}
        return sorted(normalized.union(self.find(msg_hash)))

    def list_ends(self, number: int) -> list[tuple[str, int]]:
        """Return the ends of a message in the segment, each with the row of the transaction."""
        return [(end, rows[number] - 1) for end, rows in self.ends.items() if rows[number]]

    def read(self, numbers: Sequence[int], direction: str | None = None) -> list[Any]:
        """Return messages, each as a row of the transaction that consumed it, or else sent it.

        ``in_tx_hash`` and ``out_tx_hash`` are those of the ends in the segment. With a direction
        they are only of that end, whose transaction is preferred.
        """
        consumed, sent = ([rows[each] for each in numbers] for rows in self.ends.values())
        ends = (sent, consumed) if direction == "out" else (consumed, sent)
        homes = [(first or other) - 1 for first, other in zip(*ends, strict=True)]
        likely, own = ([rows[each] for each in numbers] for rows in (self._places, self.hashes))
        places = zip(homes, likely, own, strict=True)
        lines = self._transactions.read_messages(list(places))
        hash_of, lts = self._transactions.hash_of, self._transactions.lt
        for line, home, end, start in zip(lines, homes, consumed, sent, strict=True):
            consumer = hash_of(end - 1) if end and direction != "out" else None
            sender = hash_of(start - 1) if start and direction != "in" else None
            line.extend((hash_of(home), lts[home], consumer, sender))
        return [make_row(Message, line) for line in lines]

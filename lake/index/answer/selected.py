"""Selects rows of transactions and messages for a scan, if index keys lead to few of them."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tonlake.lake.index.answer.ends import cut_chunks, read_ends, sort_rows
from tonlake.lake.index.declined import Declined
from tonlake.lake.index.segment.ends import opcode_key
from tonlake.lake.index.segment.postings import cut_hash
from tonlake.lake.index.segment.record import MESSAGE_COLUMNS, TRANSACTION_COLUMNS
from tonlake.lake.scan.plan import AmongAccounts
from tonlake.lake.schema import MESSAGES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.index import Index
    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Segment
    from tonlake.lake.index.segments import Segments
    from tonlake.lake.log.ranges import Range
    from tonlake.lake.scan.plan import Filter, Selections
    from tonlake.lake.schema import Table

CHUNK_RECORDS = 1_024
"""Approximate number of transactions read at a time; a chunk ends with a masterchain block."""

_OF_TRANSACTION = {
    "tx_workchain": "workchain",
    "tx_account": "account",
    "tx_lt": "lt",
    "tx_hash": "hash",
    "mc_seqno": "mc_seqno",
    "now": "now",
}
"""Columns of messages that belong to their transaction."""

_IN_ARRAYS = frozenset({*_OF_TRANSACTION.values(), "account_state_hash_after"})
_HELD = {
    TRANSACTIONS.name: _IN_ARRAYS.union(TRANSACTION_COLUMNS),
    MESSAGES.name: frozenset(_OF_TRANSACTION).union(MESSAGE_COLUMNS),
}


class _List(NamedTuple):
    """Transactions of a segment found by a key, and how their messages are found.

    ``places`` are places of postings, or rows. ``ends`` is set if the key finds only one end of
    messages: it returns the messages whose other end must be looked up as well.
    """

    segment: Segment
    places: range
    postings: Postings | None = None
    ends: Callable[[_List], list[Any]] | None = None

    @property
    def rows(self) -> Sequence[int]:
        """The rows of the transactions."""
        if self.postings is None:
            return self.places
        rows: list[int] = self.postings.rows[self.places.start : self.places.stop]
        return rows


def select_rows(
    index: Index, table: Table, columns: Sequence[str], chosen: Selections, span: Range, most: int
) -> Iterator[tuple[pa.Table, int]]:
    """Return all rows that pass every filter of one selection, and others, in chain order.

    They come in parts, each with the masterchain block up to which it is complete.

    Raises:
        Declined: the index lacks a column or a key for a selection, or the keys lead to more
            than ``most`` transactions.
    """
    if not chosen or not _HELD.get(table.name, frozenset()).issuperset(columns):
        raise Declined
    segments = index.segments
    lists = [each for filters in chosen for each in _find_fewest(segments, table, filters)]
    if _count(lists) > most:
        raise Declined
    if all(each.ends is _read_lines for each in lists):
        lines = [(each.segment, _list_places(each)) for each in lists if each.places]
        return read_ends(segments.segments, columns, lines, span)
    found = _list_rows(segments.segments, lists)
    placed = sorted((segments.segments[at].mc_seqno[row], at, row) for at, row in found)
    places = [place for place in placed if span[0] <= place[0] <= span[1]]
    return _read_parts(segments.segments, table, columns, places)


def _list_places(listed: _List) -> list[tuple[int, int]]:
    """Return rows, and places in them, of the messages in postings."""
    if listed.postings is None or not listed.places:
        return []
    start, end = listed.places.start, listed.places.stop
    rows, places = listed.postings.rows, listed.postings.places
    return list(zip(rows[start:end], places[start:end], strict=True))


def _count(lists: Sequence[_List]) -> int:
    return sum(len(each.places) for each in lists)


def _find_fewest(segments: Segments, table: Table, filters: Sequence[Filter]) -> list[_List]:
    """Return the rows found by the most selective of some filters."""
    known = _KEYS[table.name]
    found = [
        known[each.column](segments, _list_values(each)) for each in filters if each.column in known
    ]
    if not found:
        raise Declined
    return min(found, key=_count)


def _list_values(one: Filter) -> list[Any]:
    """Return the values of a filter: accounts, or values of the column.

    Raises:
        Declined: one of them is NULL, which has no key.
    """
    if isinstance(one, AmongAccounts):
        return [(each, key) for each, ids in one.accounts.items() for key in ids.to_pylist()]
    values: list[Any] = one.values.to_pylist()
    if None in values:
        raise Declined
    return values


def _list_rows(segments: Sequence[Segment], lists: Sequence[_List]) -> set[tuple[int, int]]:
    """Return segment number and row of all transactions in lists, and at other ends."""
    numbers = {segment: number for number, segment in enumerate(segments)}
    found = {(numbers[each.segment], row) for each in lists for row in each.rows}
    lines = [line for each in lists if each.ends for line in each.ends(each)]
    if lines:
        for segment, number in numbers.items():
            found.update((number, row) for row in segment.find_other_rows(lines))
    return found


def _read_parts(
    segments: Sequence[Segment],
    table: Table,
    columns: Sequence[str],
    places: Sequence[tuple[int, int, int]],
) -> Iterator[tuple[pa.Table, int]]:
    for chunk in cut_chunks(places, CHUNK_RECORDS):
        records = [
            record
            for number, group in groupby(sorted(chunk, key=itemgetter(1)), itemgetter(1))
            for record in segments[number].read_records([row for _, _, row in group])
        ]
        yield _make_table(table, columns, records), chunk[-1][0]


def _make_table(table: Table, columns: Sequence[str], records: Sequence[Any]) -> pa.Table:
    """Return the rows of transactions, or of all their messages, in chain order."""
    order = dict.fromkeys(("mc_seqno", *table.sort))
    names = [*dict.fromkeys((*columns, *order))]
    if table == TRANSACTIONS:
        read = {name: [record.row[name] for record in records] for name in names}
    else:
        pairs = [(record.row, each) for record in records for each in record.messages]
        read = {
            name: [row[_OF_TRANSACTION[name]] for row, _ in pairs]
            if name in _OF_TRANSACTION
            else [each[name] for _, each in pairs]
            for name in names
        }
    schema = pa.schema([table.arrow.field(name) for name in names])
    return sort_rows(table, pa.table(read, schema=schema)).select(columns)


def _find_transactions(segments: Segments, hashes: list[bytes]) -> list[_List]:
    hits = (segments.find_transaction(each) for each in hashes)
    return [_List(hit.segment, range(hit.row, hit.row + 1)) for hit in hits if hit is not None]


def _find_accounts(segments: Segments, accounts: list[AccountId]) -> list[_List]:
    return [
        _List(listed.segment, range(listed.start, listed.end))
        for account in accounts
        for listed in segments.list_account(account)
    ]


def _find_postings(
    segments: Segments, name: str, keys: list[int], ends: Callable[[_List], list[Any]] | None
) -> list[_List]:
    named = [(segment, getattr(segment, name)) for segment in segments.segments]
    return [
        _List(segment, range(*postings.find(key)), postings, ends)
        for segment, postings in named
        for key in keys
    ]


def _find_messages(segments: Segments, hashes: list[bytes]) -> list[_List]:
    return _find_postings(segments, "message", [cut_hash(each) for each in hashes], None)


def _find_opcodes(segments: Segments, opcodes: list[int]) -> list[_List]:
    return _find_postings(segments, "opcode", [opcode_key(each) for each in opcodes], _read_lines)


def _find_bodies(segments: Segments, hashes: list[bytes]) -> list[_List]:
    return _find_postings(segments, "body", [cut_hash(each) for each in hashes], _read_lines)


def _find_sent(segments: Segments, accounts: list[AccountId]) -> list[_List]:
    return _find_correspondence(segments, accounts, "alone_from", "out")


def _find_received(segments: Segments, accounts: list[AccountId]) -> list[_List]:
    return _find_correspondence(segments, accounts, "alone_to", "in")


def _find_correspondence(
    segments: Segments, accounts: list[AccountId], alone: str, direction: str
) -> list[_List]:
    """Return the transactions of accounts, and those at only the other end of their messages."""
    own = _find_accounts(segments, accounts)
    keys = [cut_hash(account) for _workchain, account in accounts]
    return [
        *(each._replace(ends=partial(_read_own, direction)) for each in own),
        *_find_postings(segments, alone, keys, _read_lines),
    ]


def _read_lines(listed: _List) -> list[Any]:
    """Return the messages in postings."""
    return listed.segment.read_lines(_list_places(listed))


def _read_own(direction: str, listed: _List) -> list[Any]:
    """Return the messages of transactions in one direction."""
    records = listed.segment.read_records(listed.rows)
    return [each for one in records for each in one.messages if each.direction == direction]


_KEYS: Mapping[str, Mapping[str, Callable[[Segments, list[Any]], list[_List]]]] = {
    TRANSACTIONS.name: {"account": _find_accounts, "hash": _find_transactions},
    MESSAGES.name: {
        "tx_account": _find_accounts,
        "tx_hash": _find_transactions,
        "msg_hash": _find_messages,
        "opcode": _find_opcodes,
        "body_hash": _find_bodies,
        "source": _find_sent,
        "destination": _find_received,
    },
}
"""Columns of each table that the index can look up, and their lookup functions."""

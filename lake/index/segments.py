"""All segments of one snapshot: exact keys, pages, and accounts by balance."""

from __future__ import annotations

import threading
from heapq import merge
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.declined import Declined
from tonlake.lake.index.page.hit import Hit
from tonlake.lake.index.page.merge import Listed
from tonlake.lake.index.segment.ends import NO_LT
from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.segment.contracts import SegmentTable
    from tonlake.lake.index.segment.segment import Segment


_READ_AT_ONCE = 100
"""Accounts looked up in newer segments at a time."""

MAX_RANKED = 50_000
"""Most accounts ranked across several segments; deeper pages are left to SQL."""


def _member_key(member: Any) -> tuple[int, int, bytes]:  # noqa: ANN401 - a row
    """Return the sort key of a transaction: logical time, workchain and account."""
    segment = member.segment
    return member.lt, *segment.account_of(segment.account_number(member.row))


Ranked = tuple[int, int, bytes]
"""Balance, workchain and account."""


class Ranking:
    """Accounts by newest balance, merged from several segments as far as requested pages need."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        """Take segments in the order of their ranges."""
        self._segments = segments
        walks = (_walk_richest(each, segments[at + 1 :]) for at, each in enumerate(segments))
        self._rest = merge(*walks, key=_order)
        self._ranked: list[Ranked] = []
        self._lock = threading.Lock()

    def page(self, offset: int, limit: int) -> list[Ranked]:
        """Return a page, highest balance first; ties by workchain and account.

        Raises:
            Declined: the page is too deep.
        """
        last = offset + limit
        if last > MAX_RANKED:
            if len(self._segments) > 1:
                raise Declined
            return self._segments[0].rank_accounts(offset, last)
        with self._lock:
            self._ranked += islice(self._rest, max(0, last - len(self._ranked)))
            return self._ranked[offset:last]


def _walk_richest(segment: Segment, newer: Sequence[Segment]) -> Iterator[Ranked]:
    """Yield the accounts whose newest state is in ``segment``."""
    for first in range(0, len(segment.richest), _READ_AT_ONCE):
        ranked = segment.rank_accounts(first, first + _READ_AT_ONCE)
        for each in newer:
            states = each.newest_states([(workchain, account) for _, workchain, account in ranked])
            ranked = [one for one, state in zip(ranked, states, strict=True) if state is None]
        yield from ranked


def _order(ranked: Ranked) -> Ranked:
    balance, workchain, account = ranked
    return -balance, workchain, account


def group_by_segment(found: Iterable[Any]) -> dict[Segment, list[int]]:
    """Return the positions in ``found`` by segment."""
    numbers: dict[Segment, list[int]] = {}
    for number, each in enumerate(found):
        numbers.setdefault(each.segment, []).append(number)
    return numbers


def read_found(lines: Sequence[Any]) -> list[Any]:
    """Return the messages of ``Found`` rows, in the same order."""
    rows: list[Any] = [None] * len(lines)
    for segment, here in group_by_segment(lines).items():
        read = segment.read_lines([(lines[at].row, lines[at].place) for at in here])
        for at, row in zip(here, read, strict=True):
            rows[at] = row
    return rows


Row = dict[str, Any]


class Segments:
    """The segments of a snapshot, which together cover all of its masterchain blocks."""

    def __init__(self, segments: Iterable[Segment], *, stale: bool = False) -> None:
        """Take segments of disjoint ranges; ``stale``: traces or contracts of some are outdated."""
        self.stale_traces = stale
        self.segments = sorted(segments, key=attrgetter("first_mc_seqno"))
        self._newest_first = self.segments[::-1]
        self._ranking = Ranking(self.segments)

    def find_transaction(self, tx_hash: bytes) -> Hit | None:
        """Return the position of a transaction; None if the snapshot has none of this hash."""
        for segment in self._newest_first:
            row = segment.find_transaction(tx_hash)
            if row is not None:
                return Hit(segment, row)
        return None

    def list_account(self, account: AccountId) -> list[Listed]:
        """Return the transactions of an account, segment by segment."""
        found = []
        for segment in self.segments:
            number = segment.find_account(account)
            if number is not None:
                start, end = segment.rows_of(number)
                found.append(Listed(segment, range(end), start, end))
        return found

    def cut_senders(self, lists: list[Listed], sender: AccountId) -> list[Listed]:
        """Return the transactions of an account that may have consumed messages of a sender.

        Messages sent from another segment are left out. Return all if traces are not current.
        """
        if self.stale_traces:
            return lists
        found = []
        for listed in lists:
            number = listed.segment.find_account(sender)
            if number is not None:
                senders = range(*listed.segment.rows_of(number))
                consumed = range(listed.start, listed.end)
                rows = listed.segment.traces.list_consumed(consumed, senders)
                found.append(Listed(listed.segment, rows, 0, len(rows)))
        return found

    def list_block(self, mc_seqno: int) -> list[Listed]:
        """Return the transactions that a masterchain block commits."""
        return [
            Listed(segment, segment.block.rows, *segment.block.find(mc_seqno))
            for segment in self.segments
            if segment.first_mc_seqno <= mc_seqno <= segment.last_mc_seqno
        ]

    def list_failed(self, first: int | None, last: int | None) -> list[Listed]:
        """Return the aborted transactions in a range of Unix seconds, by time and logical time."""
        span = 0 if first is None else first, NO_LT if last is None else last
        return [
            Listed(segment, segment.failed.rows, *segment.failed.find_between(*span))
            for segment in self.segments
        ]

    def find_messages(self, msg_hash: bytes) -> list[Any]:
        """Return the rows of messages by hash, as stored or normalized, unordered."""
        found = []
        for segment in self.segments:
            rows = segment.message.list_rows(cut_hash(msg_hash))
            for record in segment.read_records(rows):
                found += [
                    line for line in record.messages if msg_hash in (line.msg_hash, line.hash_norm)
                ]
        return found

    def find_other_ends(self, lines: Sequence[Any]) -> dict[int, list[Any]]:
        """Return the other ends of messages, by position of the given end.

        No two ends of a message share a logical time: the source's comes first.
        """
        found: dict[int, list[Any]] = {}
        for segment in self.segments:
            for number, end in segment.find_other_ends(lines):
                found.setdefault(number, []).append(end)
        return found

    def find_traces(self, trace_ids: Iterable[bytes]) -> dict[bytes, Row]:
        """Return the rows of the traces that exist and are complete."""
        found, left = dict[bytes, Row](), list(trace_ids)
        for segment in self._newest_first:
            found |= segment.traces.find_ended(left)
            left = [trace_id for trace_id in left if trace_id not in found]
            if not left:
                break
        return found

    def longest_trace(self, *, by_time: bool) -> int:
        """Return the longest duration of a complete trace, in Unix seconds or logical time."""
        return max(
            (segment.traces.longest[1 if by_time else 0] for segment in self.segments), default=0
        )

    def list_trace(self, trace_id: bytes, first_lt: int = 0, last_lt: int = NO_LT) -> list[Any]:
        """Return the transactions of a trace by logical time, then workchain and account."""
        lists = [each.list_trace(trace_id, first_lt, last_lt) for each in self.segments]
        filled = [found for found in lists if found]
        if len(filled) == 1:
            return filled[0]
        return sorted(chain.from_iterable(filled), key=_member_key)

    def list_tables(self, name: str) -> list[SegmentTable]:
        """Return a table of contracts or transfers, by segment.

        Raises:
            Declined: a segment does not have them, or they are not current.
        """
        if self.stale_traces or any(segment.tables is None for segment in self.segments):
            raise Declined
        found = (segment.tables.get(name) for segment in self.segments if segment.tables)
        return [table for table in found if table is not None]

    def find_seqnos(self, name: str, value: bytes) -> set[int]:
        """Return masterchain blocks that may have a row by hash; ``name`` is table and column."""
        key = cut_hash(value)
        return {seqno for segment in self.segments for seqno in segment.places[name].list_rows(key)}

    def newest_states(self, accounts: Sequence[AccountId]) -> list[Any]:
        """Return the newest states of accounts; None for an account without one."""
        if len(self.segments) == 1:
            return self.segments[0].newest_states(list(accounts))
        states: list[Any] = [None] * len(accounts)
        for segment in self._newest_first:
            left = [at for at, state in enumerate(states) if state is None]
            found = segment.newest_states([accounts[at] for at in left])
            for at, state in zip(left, found, strict=True):
                states[at] = state
        return states

    def rank_accounts(self, offset: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Return balance, workchain and account of a page of accounts, highest balance first."""
        return self._ranking.page(offset, limit)

    def read_records(self, hits: Iterable[Hit]) -> list[Any]:
        """Return the records of transactions, in the same order."""
        listed = list(hits)
        if len(self.segments) == 1:
            return self.segments[0].read_records([hit.row for hit in listed])
        records: list[Any] = [None] * len(listed)
        for segment, here in group_by_segment(listed).items():
            read = segment.read_records([listed[place].row for place in here])
            for place, record in zip(here, read, strict=True):
                records[place] = record
        self._find_before([record for record in records if record.before is None])
        return records

    def _find_before(self, records: Sequence[Any]) -> None:
        """Fill in the states before from earlier segments, if they are the newest there.

        A state hash identifies one transaction's outcome, and segments do not interleave: so the
        state before an account's first transaction in a segment is the newest in an earlier one.
        """
        for segment in self._newest_first:
            rows = [record.row for record in records]
            states = segment.newest_states([(row.workchain, row.account) for row in rows])
            left = []
            for record, row, state in zip(records, rows, states, strict=True):
                if state is not None and state["hash"] == row.account_state_hash_before:
                    record.before = state
                else:
                    left.append(record)
            records = left

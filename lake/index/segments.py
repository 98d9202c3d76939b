"""All segments of one snapshot: exact keys, and accounts by balance."""

from __future__ import annotations

import threading
from heapq import merge
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page import Declined, Hit, Listed
from tonlake.lake.index.segment.declared import ACCOUNT_STATES, TRACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.segment.declared import Record
    from tonlake.lake.index.segment.segment import Segment, SegmentTable

AT_ONCE = 32
"""Records that live at once: the collector of garbage does not run over so few objects."""

MAX_RANKED = 50_000
"""Most accounts ranked across several segments; deeper pages are left to SQL."""

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
            return list(islice(_walk_richest(self._segments[0], ()), offset, last))
        with self._lock:
            self._ranked += islice(self._rest, max(0, last - len(self._ranked)))
            return self._ranked[offset:last]


def _walk_richest(segment: Segment, newer: Sequence[Segment]) -> Iterator[Ranked]:
    """Yield the accounts whose newest state is in ``segment``."""
    for balance, number in zip(*segment.ranked, strict=True):
        account = segment.accounts.account_of(number)
        if not any(_has_state(each, account) for each in newer):
            yield balance, *account


def _has_state(segment: Segment, account: AccountId) -> bool:
    number = segment.accounts.find(account)
    return number is not None and bool(segment.accounts.rows_of(ACCOUNT_STATES.name, number))


def _order(ranked: Ranked) -> Ranked:
    balance, workchain, account = ranked
    return -balance, workchain, account


Row = dict[str, Any]


class Segments:
    """The segments of a snapshot, which together cover all of its masterchain blocks."""

    def __init__(self, segments: Iterable[Segment], *, stale: bool = False) -> None:
        """Take segments of disjoint ranges; ``stale``: derived rows of some are outdated."""
        self.stale = stale
        self.segments = sorted(segments, key=attrgetter("first_mc_seqno"))
        self._newest_first = self.segments[::-1]
        self._ranking = Ranking(self.segments)

    def tables(self, name: str) -> list[SegmentTable]:
        """Return a table of all segments."""
        return [segment.table(name) for segment in self.segments]

    def find_transaction(self, tx_hash: bytes) -> Hit | None:
        """Return the position of a transaction; None if the snapshot has none of this hash."""
        for segment in self._newest_first:
            row = segment.transactions.find(tx_hash)
            if row is not None:
                return Hit(segment, row)
        return None

    def list_account(self, account: AccountId) -> list[Listed]:
        """Return the transactions of an account, segment by segment."""
        found = []
        for segment in self.segments:
            number = segment.accounts.find(account)
            if number is not None:
                rows = segment.accounts.transactions_of(number)
                found.append(Listed(segment, rows, 0, len(rows)))
        return found

    def list_block(self, mc_seqno: int) -> list[Hit]:
        """Return the transactions that a masterchain block commits, by logical time and account."""
        return [
            Hit(segment, row)
            for segment in self.segments
            if segment.first_mc_seqno <= mc_seqno <= segment.last_mc_seqno
            for row in segment.transactions.list_block(mc_seqno)
        ]

    def find_messages(self, msg_hash: bytes) -> list[tuple[Segment, int]]:
        """Return the rows of messages by hash, as stored or normalized, unordered."""
        return [
            (segment, row)
            for segment in self.segments
            for row in segment.messages.find_any(msg_hash)
        ]

    def find_traces(self, trace_ids: Iterable[bytes]) -> dict[bytes, Any]:
        """Return the rows of the traces that are complete, by id."""
        found, missing = dict[bytes, Any](), list(trace_ids)
        for table in reversed(self.tables(TRACES.name)):
            rows = chain.from_iterable(table.find("trace_id", each) for each in missing)
            wanted = set(missing)
            found |= {row.trace_id: row for row in table.read(rows) if row.trace_id in wanted}
            missing = [trace_id for trace_id in missing if trace_id not in found]
            if not missing:
                break
        return found

    def longest_trace(self, *, by_time: bool) -> int:
        """Return the longest duration of a complete trace, in Unix seconds or logical time."""
        return max((each.longest_trace[1 if by_time else 0] for each in self.segments), default=0)

    def list_trace(self, trace_id: bytes) -> list[Hit]:
        """Return the transactions of a trace by logical time, then workchain and account."""
        hits = [
            Hit(segment, row)
            for segment in self.segments
            for row in segment.transactions.list_trace(trace_id)
        ]
        return sorted(hits, key=lambda hit: (hit.lt, *hit.account))

    def newest_states(self, accounts: Sequence[AccountId]) -> list[Any]:
        """Return the newest states of accounts; None for an account without one."""
        found: dict[AccountId, Any] = {}
        for segment in self._newest_first:
            found |= segment.newest_states([each for each in accounts if each not in found])
        return [found.get(account) for account in accounts]

    def rank_accounts(self, offset: int, limit: int) -> list[Ranked]:
        """Return a page of accounts, highest balance first."""
        return self._ranking.page(offset, limit)

    def read_records(self, hits: Sequence[Hit]) -> list[Record]:
        """Return the records of transactions, in the same order."""
        records: list[Any] = [None] * len(hits)
        for _, places, some in self.iter_records(hits):
            for at, record in zip(places, some, strict=True):
                records[at] = record
        return records

    def iter_records(
        self, hits: Sequence[Hit], *, numbered: bool = False
    ) -> Iterator[tuple[Segment, list[int], list[Record]]]:
        """Yield some records of one segment at a time, with their places among ``hits``.

        ``numbered``: as ``SegmentTransactions.read_records`` reads them.
        """
        by_segment: dict[Segment, list[int]] = {}
        for at, hit in enumerate(hits):
            by_segment.setdefault(hit.segment, []).append(at)
        for segment, listed in by_segment.items():
            for start in range(0, len(listed), AT_ONCE):
                places = listed[start : start + AT_ONCE]
                rows = [hits[at].row for at in places]
                records = segment.transactions.read_records(rows, numbered=numbered)
                if len(self.segments) > 1:
                    self._find_before(segment, rows, records)
                yield segment, places, records

    def _find_before(self, segment: Segment, rows: Sequence[int], records: list[Record]) -> None:
        """Fill in the states before from earlier segments, if they are the newest there.

        A state hash identifies one transaction's outcome, and segments do not interleave: so the
        state before an account's first transaction in a segment is the newest in an earlier one.
        """
        missing = {
            at: segment.transactions.account_of(rows[at])
            for at, record in enumerate(records)
            if record.before is None
        }
        for other in self._newest_first:
            if not missing:
                return
            states = other.newest_states(missing.values())
            for at in [at for at, account in missing.items() if account in states]:
                state, state_hash = states[missing[at]], records[at].row.account_state_hash_before
                if isinstance(state_hash, int):
                    state_hash = segment.rows.hash_of(state_hash)
                if state.hash == state_hash:
                    records[at] = records[at]._replace(before=state)
                    del missing[at]

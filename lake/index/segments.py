"""All segments of one snapshot: exact keys, pages, and accounts by balance."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from tonlake.lake.index.page.merge import Hit, Listed, MessageQuery, read_messages
from tonlake.lake.index.segment.ends import NO_LT, opcode_key
from tonlake.lake.index.segment.postings import cut_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tonlake.lake.account import AccountId
    from tonlake.lake.index.segment.contracts import SegmentTable
    from tonlake.lake.index.segment.postings import Postings
    from tonlake.lake.index.segment.segment import Segment


_KEPT = 200
"""So many accounts are kept as they were read: it is the first page that is asked for."""

Ranked = tuple[int, int, bytes]
"""Balance, workchain and account."""


class Ranking:
    """The largest segment's order, with places that other segments changed left out and put in."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        """Take segments in the order of their ranges."""
        self._base = max(segments, key=lambda segment: len(segment.richest))
        newest: dict[AccountId, Ranked | None] = {}
        for segment in reversed(segments):
            if segment is self._base:
                self._skip_known(newest, segments)
                continue
            for number in segment.richest:
                account = segment.account_of(number)
                newest.setdefault(account, (segment.balance[number], *account))
        self._out = sorted(
            place
            for account, ranked in newest.items()
            if ranked is not None and (place := self._place_of(account)) is not None
        )
        self._in = sorted(filter(None, newest.values()), key=_order)
        self._first: list[Ranked] | None = None

    def page(self, offset: int, limit: int) -> list[Ranked]:
        """Return a page, the richest first; equal balances by workchain and account."""
        if not self._in:
            return self._rank(offset, offset + limit)
        spare = len(self._in)
        first = max(0, offset - spare)
        last = offset + limit + len(self._out)
        left_out = set(self._out)
        ranked = enumerate(self._rank(first, last), first)
        kept = [account for at, account in ranked if at not in left_out]
        if not first:
            return sorted(kept + self._in, key=_order)[offset : offset + limit]
        edge = _order(self._ranked(first)) if first < len(self._base.richest) else None
        before = len(self._in) if edge is None else bisect_left(self._in, edge, key=_order)
        passed = first - bisect_left(self._out, first) + before
        merged = sorted(kept + self._in[before:], key=_order)
        return merged[offset - passed : offset - passed + limit]

    def _rank(self, first: int, last: int) -> list[Ranked]:
        """Return accounts of the largest segment."""
        if last > _KEPT:
            return self._base.rank_accounts(first, last)
        if self._first is None:
            self._first = self._base.rank_accounts(0, _KEPT)
        return self._first[first:last]

    def _skip_known(
        self, newest: dict[AccountId, Ranked | None], segments: Sequence[Segment]
    ) -> None:
        """Note accounts of earlier segments whose place in the base is newer."""
        earlier = segments[: [segment is self._base for segment in segments].index(True)]
        for segment in earlier:
            for number in segment.richest:
                account = segment.account_of(number)
                if self._base.newest_states([account])[0] is not None:
                    newest.setdefault(account, None)

    def _ranked(self, place: int) -> Ranked:
        number = self._base.richest[place]
        return self._base.balance[number], *self._base.account_of(number)

    def _place_of(self, account: AccountId) -> int | None:
        number = self._base.find_account(account)
        if number is None:
            return None
        rank = _order((self._base.balance[number], *account))
        places = range(len(self._base.richest))
        place = bisect_left(places, rank, key=lambda at: _order(self._ranked(at)))
        known = place < len(places) and self._base.richest[place] == number
        return place if known else None


def _order(ranked: Ranked) -> Ranked:
    balance, workchain, account = ranked
    return -balance, workchain, account


Row = dict[str, Any]


class Segments:
    """The segments of a snapshot, which together cover all of its masterchain blocks."""

    def __init__(self, segments: Iterable[Segment], *, stale: bool = False) -> None:
        """Take segments of disjoint ranges; ``stale``: traces and contracts were others in some."""
        self.stale_traces = stale
        self.segments = sorted(segments, key=attrgetter("first_mc_seqno"))
        self._newest_first = self.segments[::-1]
        self._ranking: Ranking | None = None

    def find_transaction(self, tx_hash: bytes) -> Hit | None:
        """Return where a transaction is, or None where the snapshot has none of this hash."""
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

    def list_block(self, mc_seqno: int) -> list[Listed]:
        """Return the transactions that a masterchain block commits."""
        return [
            Listed(segment, segment.block.rows, *segment.block.find(mc_seqno))
            for segment in self.segments
            if segment.first_mc_seqno <= mc_seqno <= segment.last_mc_seqno
        ]

    def list_failed(self, first: int | None, last: int | None) -> list[Listed]:
        """Return the aborted transactions of a span of unix seconds, by time, then logical time."""
        span = 0 if first is None else first, NO_LT if last is None else last
        return [
            Listed(segment, segment.failed.rows, *segment.failed.find_between(*span))
            for segment in self.segments
        ]

    def find_messages(self, msg_hash: bytes) -> list[Any]:
        """Return the rows of messages of a hash, as stored or in normal form, in no order."""
        found = []
        for segment in self.segments:
            rows = _rows_at(segment.message, cut_hash(msg_hash))
            for record in segment.read_records(rows):
                found += [
                    line for line in record.messages if msg_hash in (line.msg_hash, line.hash_norm)
                ]
        return found

    def find_other_ends(self, lines: Sequence[Any]) -> dict[int, list[Any]]:
        """Return the other ends of messages by number, from one end of each.

        No two ends of a message share a time: one is at a source, one later.
        """
        found: dict[int, list[Any]] = {}
        for segment in self.segments:
            for number, end in segment.find_other_ends(lines):
                found.setdefault(number, []).append(end)
        return found

    def read_opcode_messages(
        self, opcode: int, *, descending: bool, offset: int, limit: int
    ) -> list[Any] | None:
        """Return a page of messages with an opcode, by creation and then hash, each once.

        Those without a creation come after all others. None where the page is too deep.
        """
        key = opcode_key(opcode)
        found = [(segment, segment.opcode, *segment.opcode.find(key)) for segment in self.segments]
        query = MessageQuery("opcode", opcode, descending, offset, limit)
        return read_messages(found, query)

    def read_body_messages(
        self, body_hash: bytes, *, descending: bool, offset: int, limit: int
    ) -> list[Any] | None:
        """Return a page of messages with a body, as ``read_opcode_messages`` does."""
        key = cut_hash(body_hash)
        found = [(segment, segment.body, *segment.body.find(key)) for segment in self.segments]
        query = MessageQuery("body_hash", body_hash, descending, offset, limit)
        return read_messages(found, query)

    def find_trace(self, trace_id: bytes) -> Row | None:
        """Return the row of a complete trace; None where there is none, or it is not complete."""
        found = (segment.traces.find_ended(trace_id) for segment in self._newest_first)
        return next((row for row in found if row is not None), None)

    def list_trace(self, trace_id: bytes) -> list[Hit]:
        """Return the transactions of a trace by logical time, then workchain and account."""
        found = []
        for segment in self.segments:
            for row in _rows_at(segment.trace, cut_hash(trace_id)):
                if segment.traces.trace_of(row) == trace_id:
                    account = segment.account_of(segment.account_number(row))
                    found.append((segment.lt[row], *account, Hit(segment, row)))
        return [item[-1] for item in sorted(found, key=itemgetter(0, 1, 2))]

    def list_tables(self, name: str) -> list[SegmentTable] | None:
        """Return a table of contracts or moves by segment; None where segments are stale."""
        if self.stale_traces or any(segment.tables is None for segment in self.segments):
            return None
        found = (segment.tables.get(name) for segment in self.segments if segment.tables)
        return [table for table in found if table is not None]

    def newest_states(self, accounts: Sequence[AccountId]) -> list[Any]:
        """Return the newest states of accounts, None without one."""
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
        """Return balance, workchain and account of a page of accounts, the richest first."""
        if self._ranking is None:
            self._ranking = Ranking(self.segments)
        return self._ranking.page(offset, limit)

    def read_records(self, hits: Iterable[Hit]) -> list[Any]:
        """Return the records of transactions, in their order."""
        listed = list(hits)
        if len(self.segments) == 1:
            return self.segments[0].read_records([hit.row for hit in listed])
        places: dict[Segment, list[int]] = {}
        for place, hit in enumerate(listed):
            places.setdefault(hit.segment, []).append(place)
        records: list[Any] = [None] * len(listed)
        for segment, here in places.items():
            read = segment.read_records([listed[place].row for place in here])
            for place, record in zip(here, read, strict=True):
                records[place] = record
                if record.before is None:
                    self._find_before(record)
        return records

    def _find_before(self, record: Any) -> None:  # noqa: ANN401 - a Record
        """Take the state before from the segment before, where it is the newest of the account.

        A state hash stands for one transaction's outcome, and segments do not interleave: so the
        state before an account's first transaction of a segment is the newest of another one.
        """
        row = record.row
        for segment in self._newest_first:
            state = segment.newest_states([(row.workchain, row.account)])[0]
            if state is not None and state["hash"] == row.account_state_hash_before:
                record.before = state
                return


def _rows_at(postings: Postings, key: int) -> Sequence[int]:
    start, end = postings.find(key)
    rows: Sequence[int] = postings.rows[start:end]
    return rows

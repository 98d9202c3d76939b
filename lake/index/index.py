"""The index of a snapshot: segments on disk and in memory, and cells."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tonlake.lake.account import AccountId
from tonlake.lake.cache import Cache
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import Row, iter_dicts, read_buffer, read_rows
from tonlake.lake.index.builder.compose import SegmentSource, compose
from tonlake.lake.index.builder.plan import (
    count_rows,
    cut_range,
    is_current,
    is_readable,
    lacks_baseline,
    list_within,
    range_of,
)
from tonlake.lake.index.cells import CellStore, open_cells
from tonlake.lake.index.page import Declined, Hit, Listed, Member
from tonlake.lake.index.segment.declared import (
    ACCOUNT_STATES,
    NO_LT,
    RECORD_COLUMNS,
    TRACES,
    TRANSACTIONS,
    Record,
)
from tonlake.lake.index.segment.file import SegmentFile, map_segment
from tonlake.lake.index.segment.segment import Segment, SegmentTable
from tonlake.lake.log.digest import find_damage
from tonlake.lake.log.place import is_open
from tonlake.lake.log.ranges import Range, subtract_ranges
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.settings import LakeSettings

_Columns = Sequence[str] | None


RECORDS_AT_ONCE = 64
"""Records that live at once: few enough that the garbage collector does not run over them."""

_BEFORE, _HASH_BEFORE = map(RECORD_COLUMNS.index, ("before", "account_state_hash_before"))

MAX_RANKED = 50_000
"""Most accounts ranked across several segments; deeper pages are left to SQL."""

RANKED_AT_ONCE = 200
"""Most accounts ranked for a reader that must not wait; each takes some 60 us."""

Ranked = tuple[int, int, bytes]
"""Balance, workchain and account."""


class Ranking:
    """Accounts by newest balance, merged from several segments as far as requested pages need."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        """Take segments in the order of their ranges."""
        self._segments = segments
        walks = (_walk_richest(each, segments[at + 1 :]) for at, each in enumerate(segments))
        self._rest = merge(*walks, key=lambda ranked: (-ranked[0], *ranked[1:]))
        self._ranked: list[Ranked] = []
        self._lock = threading.Lock()

    def page(self, offset: int, limit: int, *, may_wait: bool) -> list[Ranked]:
        """Return a page, highest balance first, then by account; a deep one is Declined.

        Without ``may_wait`` so is one that takes long to rank, or waits for another to be ranked.
        """
        last = offset + limit
        missing = last - len(self._ranked)
        if missing > RANKED_AT_ONCE and not may_wait:
            raise Declined
        if last > MAX_RANKED:
            if len(self._segments) > 1:
                raise Declined
            return list(islice(_walk_richest(self._segments[0], ()), offset, last))
        if missing > 0:
            if not self._lock.acquire(blocking=may_wait):
                raise Declined
            try:
                self._ranked += islice(self._rest, max(0, last - len(self._ranked)))
            finally:
                self._lock.release()
        return self._ranked[offset:last]


def _walk_richest(segment: Segment, newer: Sequence[Segment]) -> Iterator[Ranked]:
    """Yield the accounts whose newest state is in ``segment``."""
    for balance, number in zip(*segment.ranked, strict=True):
        account = segment.accounts.account_of(number)
        if not any(each.newest_codes([account]) for each in newer):
            yield balance, *account


class Segments:
    """The segments of a snapshot, which together cover all of its masterchain blocks."""

    def __init__(self, segments: Iterable[Segment], *, stale: bool = False) -> None:
        """Take segments of disjoint ranges; ``stale``: derived rows of some are outdated."""
        self.stale = stale
        self.segments = sorted(segments, key=attrgetter("first_mc_seqno"))
        self._newest_first = self.segments[::-1]
        self.ranking = Ranking(self.segments)

    def tables(self, name: str) -> list[SegmentTable]:
        """Return a table of all segments."""
        return [segment.table(name) for segment in self.segments]

    def read(self, name: str, column: str, value: bytes | int) -> list[Any]:
        """Return the rows of a table that may have a value in a column."""
        tables = self.tables(name)
        return [row for table in tables for row in table.read(table.postings[column].find(value))]

    def open_tables(self, earlier: Segments) -> None:
        """Open the tables that readers of earlier segments have opened."""
        names = {name for segment in earlier.segments for name in segment.opened}
        for segment in self.segments:
            for name in names:
                segment.table(name)

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
                found.append(Listed(segment, segment.accounts.transactions_of(number)))
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

    def find_traces(
        self, trace_ids: Iterable[bytes], moment: str = "end_lt", span: Range = (0, NO_LT)
    ) -> dict[bytes, Any]:
        """Return complete traces by id; None for those whose moment is outside of a span."""
        found, passed, missing = dict[bytes, Any](), dict[bytes, Any](), set(trace_ids)
        for table in reversed(self.tables(TRACES.name)):
            ends, rows, find = table.numbers[moment], [], table.postings["trace_id"].find
            for trace_id in missing:
                for row in find(trace_id):
                    if span[0] <= ends[row] <= span[1]:
                        rows.append(row)
                    else:
                        passed[trace_id] = None
            found |= {row.trace_id: row for row in table.read(rows) if row.trace_id in missing}
            missing -= found.keys()
            if not missing:
                break
        return passed | found

    def longest_trace(self, *, by_time: bool) -> int:
        """Return the longest duration of a complete trace, in Unix seconds or logical time."""
        return max((each.longest_trace[1 if by_time else 0] for each in self.segments), default=0)

    def list_trace(self, trace_id: bytes) -> list[tuple[int, Member]]:
        """Return the transactions of a trace after their logical times; ties are by account."""
        members = []
        for segment in self.segments:
            transactions = segment.transactions
            lts, hash_of, parent_of = transactions.lt, transactions.hash_of, transactions.parent_of
            members += [
                (lts[row], Member(segment, row, trace_id, hash_of(row), parent_of(row)))
                for row in transactions.list_trace(trace_id)
            ]
        if len(members) > 1:
            members.sort(key=itemgetter(0))
            if len(dict(members)) < len(members):
                members.sort(key=lambda each: (each[0], each[1].account))
        return members

    def newest_states(self, accounts: Sequence[AccountId]) -> list[Any]:
        """Return the newest states of accounts; None for an account without one."""
        found: dict[AccountId, Any] = {}
        for segment in self._newest_first:
            found |= segment.newest_states([each for each in accounts if each not in found])
        return [found.get(account) for account in accounts]

    def newest_codes(self, accounts: Sequence[AccountId]) -> dict[AccountId, bytes | None]:
        """Return the code hashes in the newest states of accounts that have one."""
        found: dict[AccountId, bytes | None] = {}
        for segment in self._newest_first:
            found |= segment.newest_codes([each for each in accounts if each not in found])
        return found

    def read_records(self, hits: Sequence[Hit]) -> list[Record]:
        """Return the records of transactions, in the same order."""
        records: list[Any] = [None] * len(hits)
        for segment, places, lists in self.iter_lists(hits):
            for at, record in zip(places, segment.transactions.complete(lists), strict=True):
                records[at] = record
        return records

    def iter_lists(
        self, hits: Sequence[Hit]
    ) -> Iterator[tuple[Segment, list[int], list[list[Any]]]]:
        """Yield records as lists, some of one segment at a time, with their places in ``hits``."""
        by_segment: dict[Segment, list[int]] = {}
        for at, hit in enumerate(hits):
            by_segment.setdefault(hit.segment, []).append(at)
        for segment, listed in by_segment.items():
            for start in range(0, len(listed), RECORDS_AT_ONCE):
                places = listed[start : start + RECORDS_AT_ONCE]
                rows = [hits[at].row for at in places]
                lists = segment.transactions.read_lists(rows)
                if len(self.segments) > 1:
                    self._find_before(segment, rows, lists)
                yield segment, places, lists

    def _find_before(
        self, segment: Segment, rows: Sequence[int], lists: Sequence[list[Any]]
    ) -> None:
        """Fill in states before from earlier segments, if they are the newest there.

        Segments do not interleave, and a state hash identifies the outcome of one transaction.
        """
        missing = {
            at: segment.transactions.account_of(rows[at])
            for at, values in enumerate(lists)
            if values[_BEFORE] is None
        }
        for other in self._newest_first:
            if not missing:
                return
            states = other.newest_states(list(missing.values()))
            for at in [at for at, account in missing.items() if account in states]:
                state = states[missing[at]]
                if state.hash == segment.rows.hash_of(lists[at][_HASH_BEFORE]):
                    lists[at][_BEFORE] = state
                    del missing[at]


_READ_BYTES = 2 << 20
"""Default bytes of cached rows: four dozen commits of a dozen transactions."""

_FEW_BYTES = 1 << 20
"""Largest file that is cached as a whole."""

Key = tuple[str, ...]


class KeptRows:
    """A cache of file rows: a commit is composed alone, and once more with seven others."""

    def __init__(self, max_bytes: int = _READ_BYTES, packs: int = 8) -> None:
        """Also keep the newest ``packs``: their tables are read one after the other."""
        self._load = lru_cache(packs)(read_buffer)
        self._lock = threading.Lock()
        self._rows: Cache[Key, tuple[int, pa.Table]] = Cache(max_bytes, lambda _key, kept: kept[0])

    def keep(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return the rows of a file, and cache them for ``take``."""
        rows = self.take(lake_dir, file, columns)
        # Rows of Parquet may take many times the size of the file.
        size = file.bytes if file.pack else rows.get_total_buffer_size()
        with self._lock:
            self._rows.put((str(lake_dir), file.path, file.sha256), (size, rows))
        return rows

    def keep_whole(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return columns of a file; if the file is small, cache all of its rows for ``pop``."""
        if file.bytes > _FEW_BYTES:
            return read_rows(lake_dir, file, columns)
        rows = self.keep(lake_dir, file)
        return rows if columns is None else rows.select(columns)

    def pop(self, lake_dir: Path, file: DataFile) -> pa.Table | None:
        """Remove the rows of a file from the cache and return them; None if they are not cached."""
        with self._lock:
            kept = self._rows.pop((str(lake_dir), file.path, file.sha256))
        return kept and kept[1]

    def take(self, lake_dir: Path, file: DataFile, columns: _Columns = None) -> pa.Table:
        """Return the rows of a file, removing them from the cache; columns are fixed per table."""
        rows = self.pop(lake_dir, file)
        load = partial(self._load, lake_dir)
        return read_rows(lake_dir, file, columns, load=load) if rows is None else rows


_SPARE = 16
"""Segments kept for other snapshots, in addition to those of the newest: 0.1 MiB for each open."""

_TOGETHER = 8
"""Commits composed together: more leaves many single segments to search, fewer composes each
commit more often."""

_kept: dict[Key, Segment] = {}
"""Recently opened or composed segments, whose inputs never change; the last used ones are last."""

_read = KeptRows()


def open_segments(snapshot: Snapshot, settings: LakeSettings) -> Segments | None:
    """Return segments that cover a snapshot; None if too many rows have none, or are damaged."""
    made = [
        segment
        for segment in snapshot.segments
        if is_readable(segment) and not lacks_baseline(snapshot.state, segment)
    ]
    covered = [range_of(segment) for segment in made]
    pieces = subtract_ranges(snapshot.known_ranges, covered)
    loose = [(piece, list_within(snapshot.state, piece)) for piece in pieces]
    # Kept rows and a zero state have only states.
    named = TRANSACTIONS.name, ACCOUNT_STATES.name
    counts = (max(count_rows(found, name) for name in named) for _, found in loose)
    if sum(counts) > settings.index_memory_rows:
        return None
    try:
        segments = [_open_segment(snapshot.lake_dir, segment) for segment in made]
        for piece, found in loose:
            segments += _compose_piece(snapshot.lake_dir, found, piece)
    except LakeCorrupt:
        return None
    for key in list(_kept)[: -len(segments) - _SPARE]:
        _kept.pop(key, None)
    stale = not all(is_current(snapshot.state, segment) for segment in made)
    return Segments(segments, stale=stale)


def _open_segment(lake_dir: Path, segment: DataFile) -> Segment:
    key = (str(lake_dir), segment.path, segment.sha256)
    return _keep(key, lambda: Segment(map_segment(lake_dir, segment.path)))


def _keep(key: Key, make: Callable[[], Segment]) -> Segment:
    """Return the segment of a key, opened or composed by ``make`` if it is not cached."""
    segment = _kept.pop(key, None) or make()
    _kept[key] = segment
    return segment


def _compose_piece(lake_dir: Path, files: Sequence[DataFile], piece: Range) -> Iterator[Segment]:
    """Yield few segments, of commits in powers of ``_TOGETHER``: 21 are 8 + 8 and five single."""
    commits = cut_range(files, piece)
    at, size = 0, 1
    while 2 * size * _TOGETHER <= len(commits):
        size *= _TOGETHER
    while at < len(commits):
        if at + size <= len(commits):
            mc_range = commits[at][0][0], commits[at + size - 1][0][1]
            within: dict[str, DataFile] = {}
            for _commit, its_files in commits[at : at + size]:
                within |= its_files
            read = _read.keep if size == 1 else _read.take
            source = SegmentSource(lake_dir, [*within.values()], mc_range, read)
            key = (str(lake_dir), "{}-{}".format(*mc_range), *within)
            yield _keep(key, partial(compose_segment, source))
            at += size
        else:
            size //= _TOGETHER


def compose_segment(source: SegmentSource) -> Segment:
    """Return the segment of a source, composed in memory; LakeCorrupt: a file is damaged."""
    stream = io.BytesIO()
    compose(stream, source, packed=False)
    first, last = source.mc_range
    return Segment(SegmentFile(stream.getvalue(), f"{first}-{last} in memory"))


MAX_OPEN = 50_000
"""Most traces that may continue that are held in memory."""


class Index:
    """The index of one snapshot; each part declines if the snapshot does not have it."""

    def __init__(
        self,
        snapshot: Snapshot,
        lookups: Segments | None = None,
        cells: CellStore | None = None,
        open_traces: OpenTraces | None = None,
        *,
        may_read: bool = True,
    ) -> None:
        """Take the available parts; without ``may_read`` no data file is read."""
        self.snapshot = snapshot
        self._segments, self._cells, self.may_read = lookups, cells, may_read
        self._open = OpenTraces(snapshot) if open_traces is None else open_traces

    def open_ahead(self, earlier: Index) -> None:
        """Open what readers of an earlier snapshot have opened, as those of this one will."""
        with suppress(Declined):
            self.segments.open_tables(earlier.segments)
            if earlier._open.rows is not None:
                self._open.read(may_read=True)
        if self._cells and earlier._cells and earlier._cells.files:
            self._cells.read()

    def without_files(self) -> Index:
        """Return the same index for readers that must not wait for file reads."""
        return Index(self.snapshot, self._segments, None, self._open, may_read=False)

    @property
    def segments(self) -> Segments:
        """The segments, complete for the snapshot, or Declined."""
        if self._segments is None:
            raise Declined
        return self._segments

    @property
    def current(self) -> Segments:
        """The segments with current traces, actions and contracts, or Declined."""
        if self.segments.stale:
            raise Declined
        return self.segments

    @property
    def cells(self) -> CellStore:
        """The cells of account states, in memory; Declined: too many, or damaged."""
        if self._cells is None:
            raise Declined
        return self._cells

    @property
    def open_traces(self) -> dict[bytes, Row]:
        """The traces that may continue, by id; see ``OpenTraces.read``."""
        return self._open.read(may_read=self.may_read)


class OpenTraces:
    """The traces of a snapshot that may continue; every commit replaces their file."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.rows: dict[bytes, Row] | None = None
        """The traces by id, once they are read."""

    def read(self, *, may_read: bool) -> dict[bytes, Row]:
        """Return the traces by id; Declined: too many, damaged, or nothing may be read."""
        if self.rows is None:
            files = [file for file in self._snapshot.files[TRACES.name] if is_open(file.path)]
            if not may_read or sum(file.rows for file in files) > MAX_OPEN:
                raise Declined
            try:
                tables = [read_rows(self._snapshot.lake_dir, file) for file in files]
            except LakeCorrupt as error:
                raise Declined from error  # SQL names the damaged file
            self.rows = {row["trace_id"]: row for rows in tables for row in iter_dicts(rows)}
        return self.rows


def open_index(snapshot: Snapshot, settings: LakeSettings) -> Index | None:
    """Return the index of a snapshot; None in a partial copy without a table: SQL names it."""
    if snapshot.lacking:
        return None
    return Index(snapshot, open_segments(snapshot, settings), open_cells(snapshot, settings))


class Newest(NamedTuple):
    """The newest state of an account, and its time unless the segment has no transaction of it."""

    state: Any
    utime: int | None


class NewestStates:
    """The sound segments of a lake; they stay open until the lake no longer has them.

    They have the newest states of accounts, of which files do not show whose they are.
    """

    def __init__(self, lake_dir: Path) -> None:
        self._lake_dir = lake_dir
        self._open: dict[str, Segment] = {}

    def open(self, state: LogState) -> list[Range]:
        """Take the sound segments of a lake, and return the masterchain blocks that they cover."""
        listed = [
            segment
            for segment in state.segments
            if is_readable(segment) and not lacks_baseline(state, segment)
        ]
        damaged = {error.file for error in find_damage(self._lake_dir, listed, trust_earlier=True)}
        sound = {each.path: range_of(each) for each in listed if each.path not in damaged}
        for segment in self._open.values():
            segment.unmap_pages()  # else those of all segments grow with the chain
        self._open = {
            path: self._open.get(path) or Segment(map_segment(self._lake_dir, path))
            for path in sorted(sound, key=sound.__getitem__, reverse=True)
        }
        return list(sound.values())

    def find(self, accounts: Collection[AccountId]) -> dict[AccountId, Newest]:
        """Return the newest states in the segments; accounts without one are left out."""
        found: dict[AccountId, Newest] = {}
        missing = list(accounts)
        for segment in self._open.values():
            if not missing:
                break
            for account, state in segment.newest_states(missing).items():
                found[account] = Newest(state, _find_utime(segment, account, state))
            missing = [account for account in missing if account not in found]
        return found


def _find_utime(segment: Segment, account: AccountId, state: Any) -> int | None:  # noqa: ANN401 - a row
    """Return the block time of a state: that of its last transaction, if the segment has it."""
    number = segment.accounts.find(account)
    rows = () if number is None else segment.accounts.transactions_of(number)
    if rows and segment.transactions.lt[rows[-1]] == state.last_trans_lt:
        return segment.transactions.now[rows[-1]]
    return None

"""Makes the events of traces, assembled from a chunk of blocks and those shortly before it.

The event of a trace is sent when its last transaction is committed. Transactions of earlier blocks
are cached from when those were read; after a restart the earlier blocks are read again. Only traces
that span many commits are read from the newest snapshot.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.api.request.call import Call
from tonlake.api.request.params import Arguments, parse_hash
from tonlake.api.stream.commits import place_of, read_sources
from tonlake.api.stream.event import make_trace_event
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.resource.action import Action, render_action
from tonlake.api.v3.resource.trace import render_trace
from tonlake.api.v3.resource.transaction import render_transaction
from tonlake.api.v3.route.trace import TracesQuery, answer_traces
from tonlake.ingest.derive.action.version import expand_names
from tonlake.lake import schema
from tonlake.lake.schema.action import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tonlake.api.request.snapshot import SnapshotHolder
    from tonlake.api.settings import Settings
    from tonlake.api.stream.commits import Chunk, CommitRows
    from tonlake.api.stream.event import Event
    from tonlake.api.v3.layout.transaction import Transaction
    from tonlake.api.v3.resource.trace import Trace
    from tonlake.lake.log.ranges import Range

Row = dict[str, Any]

TRACES_AT_ONCE = 4_000
"""Approximate transactions of the traces read per query."""

NEAR_COMMITS = 100
"""A trace that began more commits ago is read from the newest snapshot."""

KEPT_TRANSACTIONS = 10_000
"""Approximate size of the cache of transactions, for traces that are not complete."""

_ALL_ACTIONS = expand_names(("latest",))


class _Member(NamedTuple):
    """A transaction of a trace: its row of ``transaction_traces``, and its JSON struct."""

    row: Row
    written: Transaction


_Members = dict[bytes, list[_Member]]


class TraceMaker:
    """Makes the events of traces that end in a chunk of blocks."""

    def __init__(self, rows: CommitRows, holder: SnapshotHolder, settings: Settings) -> None:
        """Take the rows, the snapshots and the settings."""
        self._rows = rows
        self._holder = holder
        self._settings = settings
        self._kept: OrderedDict[Chunk, _Members] = OrderedDict()
        self._count = 0

    def make(self, chunk: Chunk) -> Iterator[tuple[int, Event]]:
        """Yield the masterchain block and the event of each trace that the chunk completes.

        Raises:
            LakeError: a file is damaged.
            QueryTimeout: a query about an old trace took too long.
        """
        self._write_members(chunk)
        rows = [
            row for row in self._rows.read(chunk, schema.TRACES.name) if row["state"] == "complete"
        ]
        rows.sort(key=lambda row: (row["mc_seqno_end"], row["end_lt"], row["trace_id"]))
        actions: dict[bytes, list[Row]] = {row["trace_id"]: [] for row in rows}
        for action in self._rows.read(chunk, ACTIONS.name):
            actions.setdefault(action["trace_id"], []).append(action)
        found = self._compose(chunk, rows)
        for batch in _cut([row for row in rows if row["trace_id"] not in found]):
            call = Call(Arguments([]), self._settings, self._holder.reader(timeout_ms=0))
            ids = tuple(row["trace_id"] for row in batch)
            asked = TracesQuery(trace_id=ids, limit=len(ids), offset=0)
            found |= {parse_hash(one.trace_id): one for one in answer_traces(call, asked).traces}
        for row in rows:
            trace = found.get(row["trace_id"])
            if trace is None:
                continue  # its blocks have been undone since
            trace.actions = _show_actions(actions[row["trace_id"]])
            yield row["mc_seqno_end"], make_trace_event(trace, row["external_hash_norm"])

    def _compose(self, chunk: Chunk, rows: Sequence[Row]) -> dict[bytes, Trace]:
        """Return the traces whose transactions are all in this chunk or shortly before it."""
        ended = {row["trace_id"]: row for row in rows}
        members: _Members = {trace_id: [] for trace_id in ended}
        first = min((row["mc_seqno_start"] for row in rows), default=chunk.first)
        for part in self._list_back(chunk, first):
            for trace_id in part.keys() & ended.keys():
                members[trace_id] += part[trace_id]
        complete: dict[bytes, Trace] = {}
        for trace_id, row in ended.items():
            found = sorted(members[trace_id], key=lambda one: place_of(one.row))
            if len(found) == row["transactions"]:
                known = {encode_bytes(one.row["hash"]): one.written for one in found}
                complete[trace_id] = render_trace(row, [one.row for one in found], known)
        return complete

    def _list_back(self, chunk: Chunk, first: int) -> Iterator[_Members]:
        """Yield the transactions of the chunk and of those before it, back to block ``first``.

        Newest first, without blocks that have been undone since.
        """
        yield self._write_members(chunk)
        undone: list[Range] = []
        reached = chunk.first
        for number in range(chunk.commit, max(0, chunk.commit - NEAR_COMMITS), -1):
            if reached <= first:
                return
            gone = self._rows.find_undone(number)
            if gone is not None:
                undone.append(gone)
                continue
            for one in reversed(self._rows.list_chunks(number)):
                if first <= one.last < reached:
                    yield _leave_out(self._write_members(one), undone)
                    reached = one.first

    def _write_members(self, chunk: Chunk) -> _Members:
        """Return the transactions of a chunk by trace id, cached."""
        found = self._kept.get(chunk)
        if found is not None:
            self._kept.move_to_end(chunk)
            return found
        sources = read_sources(self._rows, chunk)
        form = self._settings.http.opcode_format
        found = {}
        for member in self._rows.read(chunk, schema.TRANSACTION_TRACES.name):
            tx_hash, trace_id = member["hash"], member["trace_id"]
            row = sources.rows[tx_hash] | {"trace_id": trace_id}
            written = render_transaction(row, sources.messages[tx_hash], sources.states, form)
            found.setdefault(trace_id, []).append(_Member(member, written))
        self._kept[chunk] = found
        self._count += sum(map(len, found.values()))
        while self._count > KEPT_TRANSACTIONS and len(self._kept) > 1:
            _chunk, dropped = self._kept.popitem(last=False)
            self._count -= sum(map(len, dropped.values()))
        return found


def _leave_out(members: _Members, undone: Sequence[Range]) -> _Members:
    """Return the transactions outside of the ``undone`` ranges of masterchain blocks."""
    if not undone:
        return members
    return {
        trace_id: [
            one
            for one in listed
            if not any(first <= one.row["mc_seqno"] <= last for first, last in undone)
        ]
        for trace_id, listed in members.items()
    }


def _show_actions(rows: Sequence[Row]) -> list[Action]:
    """Return the actions of a trace as shown to clients that know all types."""
    shown = [row for row in rows if _ALL_ACTIONS.isdisjoint(row["ancestor_type"] or ())]
    shown.sort(key=lambda row: (row["start_lt"], row["end_lt"], row["action_id"]))
    return [render_action(row) for row in shown]


def _cut(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Split the rows of traces into lists of about ``TRACES_AT_ONCE`` transactions."""
    batch: list[Row] = []
    for row in rows:
        if batch and sum(one["transactions"] for one in [*batch, row]) > TRACES_AT_ONCE:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch

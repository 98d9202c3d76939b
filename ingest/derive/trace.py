"""Assembles transactions and messages into traces, and writes the trace files of the lake.

A trace is a tree. Its root is a transaction without an in message, or whose in message is external
or created by the validators; every other transaction is a child of the one that sent its in
message. Edges with one end outside the batch stay open: messages sent but not yet consumed, and
messages consumed whose sender is unknown. Batches may arrive in any order: each joins its messages
to the open edges of all earlier ones, so the final result depends on the rows alone. The key of an
internal message is its hash and created_lt. An external message has no key, as it may be executed
many times; each execution is a root.

Each range of masterchain blocks has one file of ``transaction_traces``, with its transactions, and
one of ``traces``, with the complete traces that end in it; incomplete traces are in the open files.
A commit at the end of the chain adds files and replaces the open ones; a commit of earlier blocks
also replaces the files of the traces that it completes. When the newest blocks are undone, files of
earlier ranges do not change: traces that began before the first undone block and ended in undone
blocks, or were open, are assembled again from the remaining transactions.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.errors import IngestError
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope
from tonlake.ingest.spread import HERE, Spread
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.file.rows import iter_tuples, keep_rows, list_values, read_rows
from tonlake.lake.file.writer import sort_rows
from tonlake.lake.log.place import (
    Derivation,
    NewFile,
    Place,
    is_open,
    list_files,
    list_files_at,
    list_files_between,
    list_open_files,
    list_places,
    read_place,
)
from tonlake.lake.log.state import Commit, DataFile, LogState
from tonlake.lake.schema import (
    MESSAGES,
    OPEN_EDGES,
    TABLES,
    TRACES,
    TRANSACTION_TRACES,
    TRANSACTIONS,
    Table,
)

SYSTEM = pa.scalar(bytes(32), pa.binary(32))
"""Source of messages created by the validators, in the masterchain: fees for the elector and minted
coins (block.tlb: McBlockExtra.recover_create_msg, mint_msg)."""

LT_ALIGN = 1_000_000
"""Blocks start at multiples of it (validator/impl/collator.cpp). A message of the validators is
created at the start of its block, where no account can create one: an account at the address
``SYSTEM``, which local networks have, sends ordinary messages."""

_FALSE = pa.scalar(value=False, type=pa.bool_())

TRANSACTION_COLUMNS = ("workchain", "account", "lt", "hash", "mc_seqno", "now")
MESSAGE_COLUMNS = (
    *("tx_hash", "direction", "kind", "msg_hash", "hash_norm", "created_lt", "mc_seqno"),
    *("source_workchain", "source"),
)
EDGE_COLUMNS = ("msg_hash", "created_lt", "tx_hash", "mc_seqno")
_NO_EDGES = OPEN_EDGES.empty.select((*EDGE_COLUMNS, "direction")).append_column(
    "part", pa.nulls(0, pa.int32())
)


class UnfinishedTraces(NamedTuple):
    """Unfinished traces: incomplete rows of ``traces``, and rows of ``open_edges``."""

    traces: pa.Table = TRACES.empty
    edges: pa.Table = OPEN_EDGES.empty


class Assembled(NamedTuple):
    """The result of assembling a batch.

    ``transactions`` are rows of ``transaction_traces``, ``complete`` rows of ``traces``, in order,
    and ``open`` replaces the previous open traces. ``moved`` has rows of ``traces`` that were open
    and became parts of others, each with new_trace_id and the parent_hash of its old root.
    """

    transactions: pa.Table
    complete: pa.Table
    open: UnfinishedTraces
    moved: pa.Table


def assemble(transactions: pa.Table, messages: pa.Table, before: UnfinishedTraces) -> Assembled:
    """Join a batch of rows of ``transactions`` and ``messages`` to the open traces in ``before``.

    A part is a transaction of the batch or a trace open in ``before``; parts are numbered in that
    order, and each has at most one message that ties it to a parent. Raises IngestError if the
    messages form a cycle, which no chain can contain.
    """
    batch = transactions.select(TRANSACTION_COLUMNS)
    count = batch.num_rows
    read = _read_messages(messages.select(MESSAGE_COLUMNS).combine_chunks(), batch)
    edges = _classify_arrivals(read)
    parts = _join(_make_parts(batch, read, edges), before.traces)
    sent = _join(_list_sent(read), _list_open("out", count, before))
    consumed = _join(_list_consumed(read, edges), _list_open("in", count, before))
    found = _locate(*(iter_tuples(edges, ("msg_hash", "created_lt")) for edges in (consumed, sent)))
    # For each part, the row of `sent` that caused it.
    ties = np.full(parts.num_rows, ABSENT)
    ties[consumed["part"].to_numpy()] = found
    parents = np.full(parts.num_rows, ABSENT)
    parents[ties >= 0] = sent["part"].to_numpy()[ties[ties >= 0]]
    roots = _find_roots(parents)
    is_waiting = np.ones(sent.num_rows, np.bool_)
    is_waiting[found[found >= 0]] = False
    waiting = keep_rows(sent, pa.array(is_waiting))
    traces = sort_rows(_sum_parts(parts, roots, waiting).combine_chunks(), TRACES)
    is_complete = _is(traces["state"], "complete")
    trace_ids = _array(parts["trace_id"]).take(pa.array(roots))
    parent_hashes = _pick(sent["tx_hash"], ties)
    ends = _join(waiting, keep_rows(consumed, pa.array(found < 0)))
    ends = ends.append_column("trace_id", trace_ids.take(_array(ends["part"])))
    moved = before.traces.append_column("new_trace_id", trace_ids.slice(count))
    moved = moved.append_column("parent_hash", parent_hashes.slice(count))
    rows = batch.append_column("trace_id", trace_ids.slice(0, count))
    rows = rows.append_column("parent_hash", parent_hashes.slice(0, count))
    rows = rows.append_column("edge", _pick(_EDGES, edges))
    return Assembled(
        transactions=_fit(rows, TRANSACTION_TRACES),
        complete=keep_rows(traces, pa.array(is_complete)),
        open=UnfinishedTraces(
            keep_rows(traces, pa.array(~is_complete)),
            sort_rows(_fit(ends, OPEN_EDGES), OPEN_EDGES),
        ),
        moved=keep_rows(moved, pa.array(ties[count:] >= 0)),
    )


ABSENT = -1
"""The number of a row that is not there."""


class _Messages(NamedTuple):
    """Messages of a batch: rows, the transaction of each, and the in message of each transaction.

    These are numbers of rows. Arrays of numpy take less time than Arrow's for few rows, and no more
    for many.
    """

    rows: pa.Table
    owners: np.ndarray
    arrivals: np.ndarray
    is_in: np.ndarray
    is_ext_in: np.ndarray
    is_ext_out: np.ndarray


def _read_messages(rows: pa.Table, batch: pa.Table) -> _Messages:
    owners = _locate(list_values(rows["tx_hash"]), list_values(batch["hash"]))
    is_in = _is(rows["direction"], "in")
    incoming = np.flatnonzero(is_in & (owners >= 0))
    arrivals = np.full(batch.num_rows, ABSENT)
    arrivals[owners[incoming]] = incoming
    is_ext_in, is_ext_out = (_is(rows["kind"], kind) for kind in ("ext_in", "ext_out"))
    return _Messages(rows, owners, arrivals, is_in, is_ext_in, is_ext_out)


_EDGES = pa.array(["ext", "sys", "ord"], pa.string())
_EXTERNAL, _OF_SYSTEM, _ORDINARY = range(len(_EDGES))


def _classify_arrivals(read: _Messages) -> np.ndarray:
    """Return the edge to each transaction of the batch as a number of ``_EDGES``."""
    edges = np.full(read.rows.num_rows, _ORDINARY)
    workchains, lts = read.rows["source_workchain"], read.rows["created_lt"]
    for row in np.flatnonzero(_equals(read.rows["source"], SYSTEM)).tolist():
        if workchains[row].as_py() == MASTERCHAIN and lts[row].as_py() % LT_ALIGN == 0:
            edges[row] = _OF_SYSTEM
    edges[read.is_ext_in] = _EXTERNAL
    chosen = np.full(len(read.arrivals), ABSENT)
    has_arrived = read.arrivals >= 0
    chosen[has_arrived] = edges[read.arrivals[has_arrived]]
    return chosen


_STATES = pa.array(["complete", "pending", "broken"], pa.string())
_COMPLETE, _PENDING, _BROKEN = range(len(_STATES))


def _make_parts(batch: pa.Table, read: _Messages, edges: np.ndarray) -> pa.Table:
    """Return each transaction as a trace, ``broken`` where it must have a parent."""
    count = batch.num_rows
    logs = np.bincount(read.owners[read.is_ext_out & (read.owners >= 0)], minlength=count)
    states = np.where(edges == _ORDINARY, _BROKEN, _COMPLETE)
    columns = {
        "trace_id": batch["hash"],
        "external_hash": _pick(read.rows["msg_hash"], read.arrivals),
        "external_hash_norm": _pick(read.rows["hash_norm"], read.arrivals),
        "mc_seqno_start": batch["mc_seqno"],
        "mc_seqno_end": batch["mc_seqno"],
        "start_lt": batch["lt"],
        "end_lt": batch["lt"],
        "start_utime": batch["now"],
        "end_utime": batch["now"],
        "state": _STATES.take(pa.array(states)),
        "transactions": pa.array(np.ones(count, np.int64)),
        "messages": pa.array(logs + (read.arrivals >= 0)),
        "pending_messages": pa.array(np.zeros(count, np.int64)),
    }
    return pa.table([*columns.values()], schema=TRACES.arrow)


def _list_sent(read: _Messages) -> pa.Table:
    is_sent = ~(read.is_in | read.is_ext_in | read.is_ext_out) & (read.owners >= 0)
    rows = keep_rows(read.rows.select(EDGE_COLUMNS), pa.array(is_sent))
    return _make_edges("out", rows, read.owners[is_sent])


def _list_consumed(read: _Messages, edges: np.ndarray) -> pa.Table:
    parts = np.flatnonzero(edges == _ORDINARY)
    rows = read.rows.select(EDGE_COLUMNS).take(read.arrivals[parts]) if len(parts) else _NO_EDGES
    return _make_edges("in", rows, parts)


def _list_open(direction: str, count: int, before: UnfinishedTraces) -> pa.Table:
    if not before.edges.num_rows:
        return _NO_EDGES
    rows = keep_rows(before.edges, pa.array(_is(before.edges["direction"], direction)))
    places = _locate(*(list_values(each["trace_id"]) for each in (rows, before.traces)))
    return _make_edges(direction, rows, places + count)


def _make_edges(direction: str, rows: pa.Table, parts: np.ndarray) -> pa.Table:
    """Return edges of one direction with the part at their known end."""
    if not rows.num_rows:
        return _NO_EDGES
    columns = (rows[name] for name in EDGE_COLUMNS)
    return pa.table(
        [*columns, pa.repeat(_text(direction), rows.num_rows), pa.array(parts, pa.int32())],
        schema=_NO_EDGES.schema,
    )


def _join(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Return all rows in one chunk: open rows pass to the next batch, where chunks multiply."""
    parts = [each for each in (rows, more) if each.num_rows]
    return (pa.concat_tables(parts) if parts else rows).combine_chunks()


def _find_roots(parents: np.ndarray) -> np.ndarray:
    """Return the root of each part from its parent (absent for a root), by pointer doubling."""
    at = np.where(parents >= 0, parents, np.arange(len(parents)))
    for _ in range(len(parents).bit_length()):
        before, at = at, at[at]
        if np.array_equal(at, before):  # after a few steps: traces are shallow
            break
    if (parents[at] >= 0).any():
        raise IngestError(
            "messages form a cycle, in which no transaction comes first: the rows of "
            "transactions and messages cannot come from a chain"
        )
    return at


def _sum_parts(parts: pa.Table, roots: np.ndarray, waiting: pa.Table) -> pa.Table:
    """Return a row of ``traces`` for each root: the sum of its parts."""
    own, root_rows, sums = np.arange(len(roots)), parts, {}
    if not np.array_equal(roots, own):
        order = np.argsort(roots, kind="stable")
        ordered = roots[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        own = ordered[starts]
        root_rows = parts.take(own)
        for name, function in _TOTALS.items():
            sums[name] = pa.array(function.reduceat(parts[name].to_numpy()[order], starts))
    columns = dict(zip(TRACES.names, root_rows.itercolumns(), strict=True)) | sums
    pending = np.bincount(roots[waiting["part"].to_numpy()], minlength=len(roots))[own]
    states = np.where(pending, _PENDING, _COMPLETE)
    states[_is(root_rows["state"], "broken")] = _BROKEN
    columns["pending_messages"] = pa.array(pending)
    columns["state"] = _STATES.take(pa.array(states))
    return pa.table([*columns.values()], schema=TRACES.arrow)


_TOTALS = {
    **dict.fromkeys(("mc_seqno_start", "start_lt", "start_utime"), np.minimum),
    **dict.fromkeys(("mc_seqno_end", "end_lt", "end_utime"), np.maximum),
    **dict.fromkeys(("transactions", "messages"), np.add),
}
"""Columns of ``traces`` that sum up those of the parts."""


@cache
def _text(value: str) -> pa.Scalar:
    # Without an explicit type, each call of pyarrow tries to import a module that is not installed.
    return pa.scalar(value, pa.string())


def _is(column: pa.ChunkedArray, value: str) -> np.ndarray:
    """Return whether each value of a column of text is ``value``."""
    return _equals(column, _text(value))


def _equals(column: pa.ChunkedArray, value: pa.Scalar) -> np.ndarray:
    """Return whether each value equals ``value``; NULL does not."""
    is_one = _array(pc.equal(column, value))
    if is_one.null_count:
        is_one = pc.fill_null(is_one, _FALSE)
    found: np.ndarray = is_one.to_numpy(zero_copy_only=False)
    return found


def _fit(rows: pa.Table, table: Table) -> pa.Table:
    return pa.table([rows[name] for name in table.names], schema=table.arrow)


def _locate(values: Iterable[Hashable], among: Iterable[Hashable]) -> np.ndarray:
    """Return the number of each value in ``among``, ``ABSENT`` if it is not there."""
    numbers: dict[Hashable, int] = {}
    for number, value in enumerate(among):
        numbers.setdefault(value, number)
    return np.array([numbers.get(value, ABSENT) for value in values], np.int64)


def _pick(values: pa.ChunkedArray | pa.Array, places: np.ndarray) -> pa.Array:
    """Return the values at some places, NULL for those that are absent."""
    return _array(values).take(pa.array(places, mask=places < 0))


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


TRACE_TABLES = (TRANSACTION_TRACES.name, TRACES.name, OPEN_EDGES.name)


def open_files(traces: UnfinishedTraces, last: Place) -> Iterator[NewFile]:
    """Yield the files of the open traces of a lake whose last commit has the place ``last``."""
    place = Place(0, 0, last.day)
    yield NewFile(TRACES.name, place, traces.traces)
    yield NewFile(OPEN_EDGES.name, place, traces.edges)


class TraceFiles:
    """Derives the trace files of a commit: the stage ``traces``."""

    def __init__(self, lake_dir: Path, spread: Spread = HERE) -> None:
        """Create the stage for a lake; ``spread`` assembles the rows."""
        self._lake_dir, self._spread = lake_dir, spread
        self._derived = UnfinishedTraces()
        self._known: tuple[set[str], UnfinishedTraces] | None = None

    def __call__(
        self,
        state: LogState,
        rows: Mapping[str, pa.Table],
        place: Place,
        _earlier: Sequence[NewFile] = (),
    ) -> Derivation:
        """Return the trace files that follow from another range of base rows.

        Raises IngestError if the messages form a cycle, or the lake has transactions without
        traces.
        """
        if TRANSACTIONS.name in state.by_table and not state.by_table.keys() & TRACE_TABLES:
            raise IngestError("transactions have no traces: run `tonlake rebuild traces` first")
        opened = list_open_files(state, *TRACE_TABLES)
        transactions = rows.get(TRANSACTIONS.name, TRANSACTIONS.empty).select(TRANSACTION_COLUMNS)
        messages = rows.get(MESSAGES.name, MESSAGES.empty).select(MESSAGE_COLUMNS)
        work = partial(assemble, transactions, messages)
        step = self._spread.submit(work, self._read_open(opened)).result()
        self._derived = step.open
        ends = step.complete["mc_seqno_end"].to_numpy()
        is_here = (ends >= place.first) & (ends <= place.last)
        mended = [*self._move_transactions(state, step.moved)]
        mended += self._add_complete(state, keep_rows(step.complete, pa.array(~is_here)))
        end = state.ranges[-1][1] if state.ranges else 0
        last = place if place.first > end else max((place, *list_places(state)))
        files = [
            NewFile(TRANSACTION_TRACES.name, place, step.transactions),
            NewFile(TRACES.name, place, keep_rows(step.complete, pa.array(is_here))),
            *(file for file, _replaced in mended),
            *open_files(step.open, last),
        ]
        replaced = [*opened, *(old for _file, files in mended for old in files)]
        return Derivation(files, frozenset(file.path for file in replaced))

    def learn(self, commit: Commit) -> None:
        """Keep the open rows derived last, which the commit has written to files."""
        paths = {file.path for file in commit.added if is_open(file.path)}
        # A file that was already live is not among the files that the commit adds.
        is_whole = len(paths) == sum(rows.num_rows > 0 for rows in self._derived)
        self._known = (paths, self._derived) if is_whole else None

    def _read_open(self, opened: Sequence[DataFile]) -> UnfinishedTraces:
        if self._known is not None and self._known[0] == {file.path for file in opened}:
            return self._known[1]
        found = {file.table: read_rows(self._lake_dir, file) for file in opened}
        nothing = UnfinishedTraces()
        return UnfinishedTraces(
            found.get(TRACES.name, nothing.traces), found.get(OPEN_EDGES.name, nothing.edges)
        )

    def _move_transactions(
        self, state: LogState, moved: pa.Table
    ) -> Iterator[tuple[NewFile, list[DataFile]]]:
        """Yield new files of transactions moved to another trace, with the files they replace."""
        if not moved.num_rows:
            return
        starts, ends = moved["mc_seqno_start"], moved["mc_seqno_end"]
        span = pc.min(starts).as_py(), pc.max(ends).as_py()
        for file in list_files_between(state, *span, TRANSACTION_TRACES.name):
            at = read_place(file.path)
            here = pc.and_(pc.less_equal(starts, at.last), pc.greater_equal(ends, at.first))
            if not pc.any(here).as_py():
                continue
            rows = read_rows(self._lake_dir, file)
            mended = move_rows(rows, moved.filter(here))
            if not mended.equals(rows):
                yield NewFile(file.table, at, mended), [file]

    def _add_complete(
        self, state: LogState, complete: pa.Table
    ) -> Iterator[tuple[NewFile, list[DataFile]]]:
        """Yield new files of traces completed in earlier ranges, with the files they replace."""
        if not complete.num_rows:
            return
        places = list_places(state)
        lasts = [at.last for at in places]
        homes = [bisect_left(lasts, end) for end in complete["mc_seqno_end"].to_pylist()]
        for home in sorted(set(homes)):
            here = list_files_at(state, places[home], TRACES.name)
            parts = [read_rows(self._lake_dir, file) for file in here]
            parts.append(complete.filter(pa.array([at == home for at in homes])))
            yield NewFile(TRACES.name, places[home], pa.concat_tables(parts)), here


def move_rows(rows: pa.Table, moved: pa.Table) -> pa.Table:
    """Return rows of ``transaction_traces`` with the traces in ``moved`` under their new roots."""
    old_ids = moved["trace_id"].combine_chunks()
    trace_at = pc.index_in(rows["trace_id"], value_set=old_ids)
    root_at = pc.index_in(rows["hash"], value_set=old_ids)
    new_ids = moved["new_trace_id"].take(trace_at)
    parents = moved["parent_hash"].take(root_at)
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    columns["trace_id"] = pc.coalesce(new_ids, rows["trace_id"])
    columns["parent_hash"] = pc.coalesce(parents, rows["parent_hash"])
    return pa.table(columns, schema=rows.schema)


_COLUMNS = {TRANSACTIONS.name: TRANSACTION_COLUMNS, MESSAGES.name: MESSAGE_COLUMNS}


def rederive_traces(
    lake_dir: Path, state: LogState, _settings: IngestSections, scope: Scope
) -> Derivation:
    """Return the trace files of all ranges; IngestError if no chain has such messages."""
    old = frozenset(file.path for file in list_files(state, *TRACE_TABLES))
    return Derivation(_rederive_ranges(lake_dir, state, scope.on_range), old)


def _rederive_ranges(
    lake_dir: Path, state: LogState, on_range: Callable[[int, int], None]
) -> Iterator[NewFile]:
    places = list_places(state)
    base = {(file.table, read_place(file.path)): file for file in list_files(state, *_COLUMNS)}
    before = UnfinishedTraces()
    for done, place in enumerate(places, 1):
        transactions, messages = (
            read_rows(lake_dir, base[name, place], columns)
            if (name, place) in base
            else TABLES[name].empty
            for name, columns in _COLUMNS.items()
        )
        step = assemble(transactions, messages, before)
        ends = step.complete["mc_seqno_end"].to_pylist()
        if step.moved.num_rows or any(not place.first <= end <= place.last for end in ends):
            raise IngestError(
                f"a message sent in masterchain blocks {place.first}..{place.last} was consumed in "
                "an earlier one: the rows of transactions and messages cannot come from a chain"
            )
        before = step.open
        yield NewFile(TRANSACTION_TRACES.name, place, step.transactions)
        yield NewFile(TRACES.name, place, step.complete)
        on_range(done, len(places))
    if places:
        yield from open_files(before, places[-1])


def reopen_traces(lake_dir: Path, state: LogState, first_gone: int) -> list[NewFile]:
    """Return the open files of a lake without its masterchain blocks from ``first_gone`` on."""
    places = [place for place in list_places(state) if place.first < first_gone]
    starts = _list_cut(lake_dir, state, first_gone)
    oldest = pc.min(starts["mc_seqno_start"]).as_py() if starts.num_rows else first_gone

    def read(table: str, columns: Sequence[str], key: str, values: pa.ChunkedArray) -> pa.Table:
        fields = pa.schema([TABLES[table].arrow.field(name) for name in columns])
        stays = (pc.field("mc_seqno") < first_gone) & pc.field(key).isin(values.combine_chunks())
        rows = [
            read_rows(lake_dir, file, columns, stays)
            for file in list_files(state, table)
            if not is_open(file.path) and oldest <= read_place(file.path).last
            if read_place(file.path).first < first_gone
        ]
        return pa.concat_tables([fields.empty_table(), *rows])

    hashes = read(TRANSACTION_TRACES.name, ("hash",), "trace_id", starts["trace_id"])["hash"]
    transactions = read(TRANSACTIONS.name, TRANSACTION_COLUMNS, "hash", hashes)
    messages = read(MESSAGES.name, MESSAGE_COLUMNS, "tx_hash", hashes)
    step = assemble(transactions, messages, UnfinishedTraces())
    if step.complete.num_rows:
        raise IngestError(
            f"{step.complete.num_rows} traces recorded as continuing after masterchain "
            f"block {first_gone - 1} end before it: run `tonlake rebuild traces`"
        )
    return list(open_files(step.open, places[-1]))


def _list_cut(lake_dir: Path, state: LogState, first_gone: int) -> pa.Table:
    """Return id and start of the traces that begin before ``first_gone`` and end later."""
    columns = ("trace_id", "mc_seqno_start")
    before = pc.field("mc_seqno_start") < first_gone
    cut = before & (pc.field("mc_seqno_end") >= first_gone)
    parts = [
        read_rows(lake_dir, file, columns, before if is_open(file.path) else cut)
        for file in list_files(state, TRACES.name)
        if is_open(file.path) or read_place(file.path).last >= first_gone
    ]
    fields = pa.schema([TRACES.arrow.field(name) for name in columns])
    return pa.concat_tables([fields.empty_table(), *parts])

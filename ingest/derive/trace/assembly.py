"""Assembles transactions and messages into traces, batch by batch.

A trace is a tree. Its root is a transaction without an in message, or whose in message is external
or created by the validators; every other transaction is a child of the one that sent its in
message. Edges with one end outside the batch stay open: messages sent but not yet consumed, and
messages consumed whose sender is unknown. Batches may arrive in any order: each joins its messages
to the open edges of all earlier ones, so the final result depends on the rows alone.

The key of an internal message is its hash and created_lt. An external message has no key, as it may
be executed many times; each execution is a root.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.errors import TraceImpossible
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.schema.trace import OPEN_EDGES, TRACES, TRANSACTION_TRACES

if TYPE_CHECKING:
    from tonlake.lake.schema import Table

_SYSTEM_WORKCHAIN = pa.scalar(MASTERCHAIN, pa.int32())
SYSTEM = pa.scalar(bytes(32), pa.binary(32))
"""Source of messages created by the validators, in the masterchain: fees for the elector and minted
coins (block.tlb: McBlockExtra.recover_create_msg, mint_msg)."""

LT_ALIGN = pa.scalar(1_000_000, pa.int64())
"""Blocks start at multiples of it (validator/impl/collator.cpp). A message of the validators is
created at the start of its block, where no account can create one: an account at the address
``SYSTEM``, which local networks have, sends ordinary messages."""

_NOTHING = pa.scalar(b"", pa.binary())

TRANSACTION_COLUMNS = ("workchain", "account", "lt", "hash", "mc_seqno", "now")
MESSAGE_COLUMNS = (
    *("tx_hash", "direction", "kind", "msg_hash", "hash_norm", "created_lt", "mc_seqno"),
    *("source_workchain", "source"),
)
EDGE_COLUMNS = ("msg_hash", "created_lt", "tx_hash", "mc_seqno")


class OpenTraces(NamedTuple):
    """Unfinished traces: incomplete rows of ``traces``, and rows of ``open_edges``."""

    traces: pa.Table = TRACES.empty
    edges: pa.Table = OPEN_EDGES.empty


class Assembled(NamedTuple):
    """The result of assembling a batch.

    ``transactions`` are rows of ``transaction_traces``, ``complete`` rows of ``traces``, and
    ``open`` replaces the previous open traces. ``moved`` has the rows of ``traces`` that were open
    and became parts of other traces, each with new_trace_id and the parent_hash of its old root.
    """

    transactions: pa.Table
    complete: pa.Table
    open: OpenTraces
    moved: pa.Table


def assemble(transactions: pa.Table, messages: pa.Table, before: OpenTraces) -> Assembled:
    """Join a batch of rows of ``transactions`` and ``messages`` to the open traces in ``before``.

    A part is a transaction of the batch or a trace open in ``before``; parts are numbered in that
    order, and each has at most one message that ties it to a parent.

    Raises:
        TraceImpossible: the messages form a cycle, which no chain can contain.
    """
    batch = transactions.select(TRANSACTION_COLUMNS)
    messages = messages.select(MESSAGE_COLUMNS)
    arrivals = _list_arrivals(batch, messages)
    parts = pa.concat_tables([_make_parts(batch, arrivals, messages), before.traces])
    sent = pa.concat_tables([_list_sent(batch, messages), _list_open("out", batch, before)])
    consumed = pa.concat_tables([_list_consumed(batch, arrivals), _list_open("in", batch, before)])
    found = pc.index_in(_make_keys(consumed), value_set=_make_keys(sent))
    # For each part, the row of `sent` that caused it; NULL for a root.
    tie = found.take(_locate(_number(parts), consumed["part"]))
    roots = _find_roots(_array(sent["part"]).take(tie))
    trace_ids = _array(parts["trace_id"]).take(roots)
    parents = _array(sent["tx_hash"]).take(tie)
    waiting = sent.filter(pc.invert(pc.is_in(_number(sent), value_set=found)))
    # One chunk: open rows pass to the next batch, where chunks would multiply.
    traces = _sum_parts(parts, roots, waiting).combine_chunks()
    is_complete = _is(traces["state"], "complete")
    edges = pa.concat_tables([waiting, consumed.filter(pc.is_null(found))]).combine_chunks()
    edges = edges.append_column("trace_id", trace_ids.take(_array(edges["part"])))
    moved = before.traces.append_column("new_trace_id", trace_ids.slice(batch.num_rows))
    moved = moved.append_column("parent_hash", parents.slice(batch.num_rows))
    rows = batch.append_column("trace_id", trace_ids.slice(0, batch.num_rows))
    rows = rows.append_column("parent_hash", parents.slice(0, batch.num_rows))
    return Assembled(
        transactions=_fit(rows.append_column("edge", arrivals["edge"]), TRANSACTION_TRACES),
        complete=traces.filter(is_complete),
        open=OpenTraces(traces.filter(pc.invert(is_complete)), _fit(edges, OPEN_EDGES)),
        moved=moved.filter(pc.is_valid(moved["parent_hash"])),
    )


def _list_arrivals(batch: pa.Table, messages: pa.Table) -> pa.Table:
    """Return the in message of each transaction of the batch, NULLs if none, and its edge."""
    incoming = pc.indices_nonzero(_is(messages["direction"], "in"))
    at = _locate(batch["hash"], messages["tx_hash"].take(incoming))
    rows = messages.take(incoming.take(at))
    created_lt = rows["created_lt"]
    starts_block = pc.equal(pc.multiply(pc.divide(created_lt, LT_ALIGN), LT_ALIGN), created_lt)
    is_zero = pc.equal(rows["source"], SYSTEM)
    is_system = pc.and_(
        pc.and_(is_zero, pc.equal(rows["source_workchain"], _SYSTEM_WORKCHAIN)), starts_block
    )
    from_chain = pc.if_else(_is_true(is_system), _text("sys"), _text("ord"))
    edge = pc.if_else(_is(rows["kind"], "ext_in"), _text("ext"), from_chain)
    return rows.append_column("edge", edge)


def _make_parts(batch: pa.Table, arrivals: pa.Table, messages: pa.Table) -> pa.Table:
    """Return each transaction as a trace, ``broken`` where it must have a parent."""
    logs = messages.filter(_is(messages["kind"], "ext_out"))["tx_hash"].value_counts()
    log_count = logs.field("counts").take(_locate(batch["hash"], logs.field("values")))
    arrived = pc.cast(pc.is_valid(arrivals["kind"]), pa.int64())
    is_broken = _is_true(_is(arrivals["edge"], "ord"))
    columns = {
        "trace_id": batch["hash"],
        "external_hash": arrivals["msg_hash"],
        "external_hash_norm": arrivals["hash_norm"],
        "mc_seqno_start": batch["mc_seqno"],
        "mc_seqno_end": batch["mc_seqno"],
        "start_lt": batch["lt"],
        "end_lt": batch["lt"],
        "start_utime": batch["now"],
        "end_utime": batch["now"],
        "state": pc.if_else(is_broken, _text("broken"), _text("complete")),
        "transactions": pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows),
        "messages": pc.add(arrived, pc.fill_null(log_count, 0)),
        "pending_messages": pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows),
    }
    return pa.table(columns, schema=TRACES.arrow)


def _list_sent(batch: pa.Table, messages: pa.Table) -> pa.Table:
    is_sent = pc.and_(_is(messages["direction"], "out"), _is(messages["kind"], "int"))
    rows = messages.select(EDGE_COLUMNS).filter(is_sent)
    return _make_edges("out", rows, _locate(rows["tx_hash"], batch["hash"]))


def _list_consumed(batch: pa.Table, arrivals: pa.Table) -> pa.Table:
    is_ordinary = _is_true(_is(arrivals["edge"], "ord"))
    return _make_edges("in", arrivals.filter(is_ordinary), _number(batch).filter(is_ordinary))


def _list_open(direction: str, batch: pa.Table, before: OpenTraces) -> pa.Table:
    rows = before.edges.filter(_is(before.edges["direction"], direction))
    place = _locate(rows["trace_id"], before.traces["trace_id"])
    return _make_edges(direction, rows, pc.add(place, pa.scalar(batch.num_rows, pa.int32())))


def _make_edges(direction: str, rows: pa.Table, part: pa.Array) -> pa.Table:
    """Return edges of one direction with the part at their known end."""
    columns = {name: rows[name] for name in EDGE_COLUMNS}
    columns["direction"] = pa.repeat(_text(direction), rows.num_rows)
    return pa.table({**columns, "part": part})


def _make_keys(edges: pa.Table) -> pa.Array:
    """Return the hash and created_lt of each message as one value."""
    created_lt = _array(edges["created_lt"]).view(pa.binary(8)).cast(pa.binary())
    msg_hash = _array(edges["msg_hash"]).cast(pa.binary())
    return pc.binary_join_element_wise(msg_hash, created_lt, _NOTHING)


def _find_roots(parents: pa.Array) -> pa.Array:
    """Return the root of each part from its parent (NULL for a root), by pointer doubling."""
    at = pc.coalesce(parents, _count(len(parents)))
    for _ in range(len(parents).bit_length()):
        before, at = at, at.take(at)
        if at.equals(before):  # after a few steps: traces are shallow
            break
    if parents.take(at).null_count < len(parents):
        raise TraceImpossible(
            "messages form a cycle, in which no transaction comes first: the rows of "
            "transactions and messages cannot come from a chain"
        )
    return at


def _sum_parts(parts: pa.Table, roots: pa.Array, waiting: pa.Table) -> pa.Table:
    """Return a row of ``traces`` for each root: the sum of its parts."""
    totals: dict[str, str] = {
        **dict.fromkeys(("mc_seqno_start", "start_lt", "start_utime"), "min"),
        **dict.fromkeys(("mc_seqno_end", "end_lt", "end_utime"), "max"),
        **dict.fromkeys(("transactions", "messages"), "sum"),
    }
    groups = parts.append_column("root", roots).group_by("root", use_threads=False)
    sums = groups.aggregate(list(totals.items()))
    root_rows = parts.take(sums["root"])
    counts = roots.take(_array(waiting["part"])).value_counts()
    pending = counts.field("counts").take(_locate(sums["root"], counts.field("values")))
    unbroken = pc.if_else(pc.is_valid(pending), _text("pending"), _text("complete"))
    columns = {name: root_rows[name] for name in TRACES.names}
    columns |= {name: sums[f"{name}_{function}"] for name, function in totals.items()}
    columns["pending_messages"] = pc.fill_null(pending, 0)
    columns["state"] = pc.if_else(_is(root_rows["state"], "broken"), _text("broken"), unbroken)
    return pa.table(columns, schema=TRACES.arrow)


@cache
def _text(value: str) -> pa.Scalar:
    # Without an explicit type, each call of pyarrow tries to import a module that is not installed.
    return pa.scalar(value, pa.string())


def _is(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    return pc.equal(column, _text(value))


def _fit(rows: pa.Table, table: Table) -> pa.Table:
    return pa.table(rows.select(table.names).columns, schema=table.arrow)


def _number(rows: pa.Table) -> pa.Array:
    return _count(rows.num_rows)


def _count(size: int) -> pa.Array:
    """Return 0, 1 and so on; a Python range would be a hundred times slower."""
    return pa.arange(0, size).cast(pa.int32())


def _locate(values: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.Array:
    """Return the index of each value in ``among``, NULL if absent."""
    return _array(pc.index_in(values, value_set=_array(among)))


def _is_true(condition: pa.ChunkedArray) -> pa.Array:
    """Return the condition with NULL treated as false."""
    return _array(pc.fill_null(condition, fill_value=False))


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

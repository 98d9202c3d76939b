"""Pages of traces with their transactions and addresses."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec import Raw

from tonlake.api.request.call import Call
from tonlake.api.v3.page.transaction_page import answer_transactions, list_addresses, read_records
from tonlake.api.v3.resource.answer import (
    Head,
    Trace,
    draw_tree,
    encode_hashes,
    head_of_record,
    read_head,
    render_trace,
    start_trace,
)
from tonlake.api.v3.resource.transaction import find_record_writer
from tonlake.queries.reader import Row


class TracePage(NamedTuple):
    """Traces, and the accounts of their address book: workchain and id."""

    traces: list[Trace]
    named: set[tuple[int, bytes]]


def answer_page(
    call: Call, rows: Sequence[Row], members: Mapping[bytes, Sequence[Row]]
) -> TracePage:
    """Return the traces of rows of ``traces``, in their order.

    ``members`` are their transactions by trace id, except for traces that are too large.
    """
    page = answer_transactions(call, list(_list_members(rows, members)))
    known = {transaction.hash: transaction for transaction in page.transactions}
    traces = [render_trace(row, members.get(row["trace_id"]), known) for row in rows]
    found = list_addresses(page.transactions)
    return TracePage(traces, {(address.workchain, address.account) for address in found})


def write_page(
    call: Call, rows: Sequence[Row], members: Mapping[bytes, Sequence[Row]]
) -> TracePage:
    """Return the same as ``answer_page``, for sending only.

    With the C extension the transactions are ``msgspec.Raw``: JSON written without structs.
    """
    write = find_record_writer(call.settings.http.opcode_format)
    if write is None:
        return answer_page(call, rows, members)
    records = read_records(call, list(_list_members(rows, members)))
    written, named = write(records, _read_heads)
    rest = iter(written)
    traces: list[Any] = []
    for row in rows:
        own = members.get(row["trace_id"])
        trace: Any = start_trace(row, is_shown=own is not None)
        if own is not None:
            hashes, nodes = encode_hashes(own), {}
            trace.transactions_order = order = list(hashes.values())
            trace.transactions = shown = {}
            for tx_hash in order:
                text, nodes[tx_hash] = next(rest)
                shown[tx_hash] = Raw(text)
            trace.trace = Raw(draw_tree(trace.trace_id, hashes, own, nodes))
        traces.append(trace)
    return TracePage(traces, named)


def _read_heads(records: list[Any], values: memoryview | bytes) -> list[Head]:
    """Return the tree node of each record."""
    return [
        read_head(record, values) if isinstance(record, list) else head_of_record(record)
        for record in records
    ]


def _list_members(rows: Iterable[Row], members: Mapping[bytes, Sequence[Row]]) -> Iterable[Row]:
    return chain.from_iterable(members.get(row["trace_id"], ()) for row in rows)

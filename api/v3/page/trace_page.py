"""Pages of traces with their transactions and addresses."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Raw

from tonlake.api.v3.page.transaction_page import answer_transactions, list_addresses, read_records
from tonlake.api.v3.resource.trace import Trace, render_trace, start_trace
from tonlake.api.v3.resource.transaction import find_trace_writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.api.request.call import Call

Row = dict[str, Any]


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
    write = find_trace_writer(call.settings.http.opcode_format)
    if write is None:
        return answer_page(call, rows, members)
    keys = list(_list_members(rows, members))
    records = read_records(call, keys)
    parents = [key["parent_hash"] for key in keys]
    named: set[tuple[int, bytes]] = set()
    traces: list[Any] = []
    start = 0
    for row in rows:
        trace: Any = start_trace(row, is_shown=row["trace_id"] in members)
        if row["trace_id"] in members:
            end = start + len(members[row["trace_id"]])
            texts = write(row["trace_id"], records[start:end], parents[start:end], named)
            trace.trace, trace.transactions_order, trace.transactions = map(Raw, texts)
            start = end
        traces.append(trace)
    return TracePage(traces, named)


def _list_members(rows: Iterable[Row], members: Mapping[bytes, Sequence[Row]]) -> Iterable[Row]:
    return chain.from_iterable(members.get(row["trace_id"], ()) for row in rows)

"""Operations about traces."""

from __future__ import annotations

import re
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tonlake.api.chain.header import find_trace_ids
from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import (
    INT64_MAX,
    ConversionError,
    Converter,
    Flag,
    Hashes,
    Int32,
    OneAddress,
    Texts,
)
from tonlake.api.text.address import Address
from tonlake.api.v3.page.classified import read_trace_actions
from tonlake.api.v3.page.coverage import check_mc_seqno
from tonlake.api.v3.page.listed import describe, write_description
from tonlake.api.v3.page.operation import SpanPage, operation
from tonlake.api.v3.page.trace_page import answer_page, write_page
from tonlake.api.v3.resource.trace import (
    PAGE_TRANSACTIONS,
    TRACE_TRANSACTIONS,
    Events,
    Traces,
)
from tonlake.api.v3.route.action import list_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tonlake.api.request.call import Call
    from tonlake.api.v3.page.trace_page import TracePage
    from tonlake.api.v3.resource.answer import AddressBook, Metadata
    from tonlake.api.v3.resource.trace import Trace

    Show = Callable[
        [Call, Sequence[dict[str, Any]], Mapping[bytes, Sequence[dict[str, Any]]]], TracePage
    ]


Row = dict[str, Any]

_CURSOR = re.compile(r"([0-9]{1,19}):([0-9a-f]{64})")
CURSOR_FORM = "^[0-9]{1,18}:[0-9a-f]{64}$"


class Cursor(msgspec.Struct, frozen=True):
    """The trace after which a page begins: the sort key (time or lt of its end), and its id."""

    end: int
    trace_id: bytes

    def __str__(self) -> str:
        """Return the text of the parameter."""
        return f"{self.end}:{self.trace_id.hex()}"


def parse_cursor(text: str) -> Cursor:
    """Parse a value of the header ``X-Tonlake-Cursor``."""
    match = _CURSOR.fullmatch(text)
    if match is None or int(match[1]) > INT64_MAX:
        raise ConversionError(text)
    return Cursor(int(match[1]), bytes.fromhex(match[2]))


class TracesQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of traces, combined by AND; the first four exclude each other."""

    account: OneAddress = None
    trace_id: Hashes = ()
    tx_hash: Hashes = ()
    msg_hash: Hashes = ()
    mc_seqno: Int32 = None
    include_actions: Flag = None
    supported_action_types: Texts = ()
    cursor: Annotated[
        Cursor | None, Converter(parse_cursor, {"type": "string", "pattern": CURSOR_FORM})
    ] = None


def get_traces(call: Call, query: TracesQuery) -> Traces:
    """List traces with their transactions, latest end first.

    Raises:
        RequestInvalid: filters that exclude each other, or too many transactions.
        NotCovered: the result is empty, and the lake does not cover the requested range.
    """
    return Traces(*_write(call, query, with_actions=bool(query.include_actions)))


def answer_traces(call: Call, query: TracesQuery) -> Traces:
    """Return the same as ``get_traces``, with transactions as objects.

    Raises:
        RequestInvalid, NotCovered: as in ``get_traces``.
    """
    page = _answer(call, query, answer_page, with_actions=bool(query.include_actions))
    return Traces(page.traces, *describe(call, starmap(Address, page.named)))


def get_events(call: Call, query: TracesQuery) -> Events:
    """List traces with actions (former name of /traces).

    Raises:
        RequestInvalid, NotCovered: as in ``get_traces``.
    """
    return Events(*_write(call, query, with_actions=True))


def _write(
    call: Call, query: TracesQuery, *, with_actions: bool
) -> tuple[list[Trace], AddressBook, Metadata]:
    page = _answer(call, query, write_page, with_actions=with_actions)
    return page.traces, *write_description(call, page.named)


def _answer(call: Call, query: TracesQuery, show: Show, *, with_actions: bool) -> TracePage:
    rows = _find_traces(call, query)
    if len(rows) == query.limit:
        end = rows[-1]["end_utime" if query.by_time else "end_lt"]
        call.headers["X-Tonlake-Cursor"] = str(Cursor(end, rows[-1]["trace_id"]))
    page = show(call, rows, _read_members(call, rows))
    if with_actions:
        actions, acted = read_trace_actions(call, rows, query.supported_action_types)
        for trace, row in zip(page.traces, rows, strict=True):
            trace.actions = actions[row["trace_id"]]
        page.named.update((each.workchain, each.account) for each in list_addresses(acted))
    return page


def _find_traces(call: Call, query: TracesQuery) -> list[Row]:
    chosen = [query.account, query.trace_id, query.tx_hash, query.msg_hash]
    if sum(map(bool, chosen)) > 1:
        raise RequestInvalid("only one of account, trace_id, tx_hash, msg_hash should be specified")
    if query.mc_seqno is not None:
        check_mc_seqno(call.reader, query.mc_seqno)
    rows = _ask(call, query)
    if not rows:
        is_open = query.mc_seqno is None and query.cursor is None
        query.check_covered(call.reader, may_lie_in_gap=is_open)
    return rows


def _ask(call: Call, query: TracesQuery) -> list[Row]:
    reader = call.reader
    filters = {
        "mc_seqno": query.mc_seqno,
        "by_time": query.by_time,
        "after_end": query.cursor and query.cursor.end,
        "after_id": query.cursor and query.cursor.trace_id,
        **query.filters(),
    }
    if query.account is not None:
        workchain, account = query.account.workchain, query.account.account
        return reader.rows("v3/traces_of_account", workchain=workchain, account=account, **filters)
    if query.tx_hash:
        trace_ids = find_trace_ids(reader, tx_hashes=query.tx_hash)
    elif query.msg_hash:
        trace_ids = find_trace_ids(reader, msg_hashes=query.msg_hash)
    elif query.trace_id:
        trace_ids = list(query.trace_id)
    else:
        return reader.rows("v3/traces", **filters)
    return reader.rows("v3/traces_by_id", trace_ids=trace_ids, **filters)


def _read_members(call: Call, rows: list[Row]) -> dict[bytes, list[Row]]:
    """Return the transactions of each trace that is not too large, by trace id.

    Raises:
        RequestInvalid: there are too many for one response.
    """
    shown = [row for row in rows if row["transactions"] <= TRACE_TRANSACTIONS]
    count = sum(row["transactions"] for row in shown)
    if count > PAGE_TRANSACTIONS:
        raise RequestInvalid(
            f"these traces have {count} transactions, more than {PAGE_TRANSACTIONS}: "
            "ask for fewer traces"
        )
    if not shown:
        return {}
    members: dict[bytes, list[Row]] = {row["trace_id"]: [] for row in shown}
    found = call.reader.rows(
        "v3/trace_transactions",
        trace_ids=list(members),
        first_lt=min(row["start_lt"] for row in shown),
        last_lt=max(row["end_lt"] for row in shown),
    )
    for member in found:
        members[member["trace_id"]].append(member)
    return members


routes = [
    operation("/traces", TracesQuery, get_traces),
    operation("/events", TracesQuery, get_events),
]

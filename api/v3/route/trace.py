"""Operations about traces, and about the actions derived from them, such as transfers and swaps."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

from msgspec import Raw

from tonlake.api.chain.block import find_trace_ids
from tonlake.api.errors import AddressInvalid, NotDerived, RequestInvalid
from tonlake.api.request.call import (
    INT64_MAX,
    Call,
    ConversionError,
    Converter,
    Flag,
    Hashes,
    Int32,
    OneAddress,
    Texts,
)
from tonlake.api.text.encoding import Address, name_ranges, parse_address, render_raw
from tonlake.api.v3.page.history import warn_of_unanswered
from tonlake.api.v3.page.listed import QUOTED_ADDRESS, describe
from tonlake.api.v3.page.operation import SpanPage, check_mc_seqno, operation
from tonlake.api.v3.page.transaction_page import answer_transactions, read_records
from tonlake.api.v3.resource.action import Action, render_action
from tonlake.api.v3.resource.answer import (
    PAGE_TRANSACTIONS,
    TRACE_TRANSACTIONS,
    Described,
    Events,
    Head,
    Trace,
    Traces,
    head_of_record,
    read_head,
    read_sent,
    render_trace,
)
from tonlake.api.v3.resource.transaction import write_records
from tonlake.lake.schema import DEX_POOLS, JETTON_WALLETS, MULTISIG_ORDERS, NFT_ITEMS, NFT_SALES
from tonlake.lake.schema.action_type import expand_names
from tonlake.queries.reader import Reader, Row


class TracePage(NamedTuple):
    """Traces, and the accounts of their address book: workchain and id."""

    traces: list[Trace]
    named: set[tuple[int, bytes]]


def write_page(
    call: Call, rows: Sequence[Row], members: Mapping[bytes, Sequence[Row]]
) -> TracePage:
    """Return the traces of rows of ``traces``, in their order, their transactions as JSON.

    ``members`` are their transactions by trace id, except for traces that are too large.
    """
    keys = chain.from_iterable(members.get(row["trace_id"], ()) for row in rows)
    records, form = read_records(call, list(keys)), call.settings.http.opcode_format
    written, named = write_records(records, form, _read_heads)
    rest = ((Raw(text), head) for text, head in written)
    return TracePage([render_trace(row, members.get(row["trace_id"]), rest) for row in rows], named)


def _read_heads(records: list[Any], values: memoryview | bytes) -> list[Head]:
    """Return the tree node of each record."""
    return [
        read_head(record, values) if isinstance(record, list) else head_of_record(record)
        for record in records
    ]


_PART = r"([0-9]{1,19}):([0-9a-f]{64})"
_TYPE_NAME = re.compile(r"[A-Za-z0-9_.]+")
_ADDRESS_COLUMNS = (
    *("source", "source_secondary", "destination", "destination_secondary"),
    *("asset", "asset_secondary", "asset2", "asset2_secondary"),
)


TypeNames = Annotated[tuple[str, ...], Converter(str, {"type": "string"}, many=True)]
"""Action types; the parameter may be repeated, but is not split at commas."""


class TraceCursor(NamedTuple):
    """Where a page begins: time or lt of the end, and id, of a trace, and maybe of an action."""

    trace_end: int
    trace_id: bytes
    end: int = 0
    action_id: bytes = b""

    def __str__(self) -> str:
        text = f"{self.trace_end}:{self.trace_id.hex()}"
        return f"{text}:{self.end}:{self.action_id.hex()}" if self.action_id else text


def parse_cursor(text: str, parts: int = 1) -> TraceCursor:
    """Parse a value of the header ``X-Tonlake-Cursor``: of a trace, or with two parts an action."""
    match = re.fullmatch(":".join([_PART] * parts), text)
    texts = () if match is None else match.groups()
    ends = [int(end) for end in texts[::2]]
    if not ends or max(ends) > INT64_MAX:
        raise ConversionError(text)
    ids: Iterator[Any] = map(bytes.fromhex, texts[1::2])
    return TraceCursor(*chain(*zip(ends, ids, strict=True)))


def _convert_cursor(parts: int) -> Converter:
    pattern = ":".join(["[0-9]{1,18}:[0-9a-f]{64}"] * parts)
    schema = {"type": "string", "pattern": f"^{pattern}$"}
    return Converter(partial(parse_cursor, parts=parts), schema)


LATEST = "latest"
_NO_LIMIT = (1 << 31) - 1

_CLASSIFIED_BY = tuple(
    table.name for table in (JETTON_WALLETS, NFT_ITEMS, NFT_SALES, MULTISIG_ORDERS, DEX_POOLS)
)
"""Contracts that rules of actions look up."""


def choose_types(call: Call, names: Sequence[str]) -> frozenset[str]:
    """Return the action types a client knows: of the header X-Actions-Version, else as named."""
    chosen = [call.actions_version] if call.actions_version else names or [LATEST]
    return expand_names(tuple(chosen))


def check_classified(call: Call, *, is_empty: bool) -> None:
    """Warn of blocks with unclassified traces or contracts; raise NotDerived without a result."""
    warn_of_unanswered(call, "actions may have general types", *_CLASSIFIED_BY)
    held = call.reader.snapshot.ranges
    done = [
        (row["first_mc_seqno"], row["last_mc_seqno"])
        for row in call.reader.lasting_rows("v3/action_ranges")
    ]
    count = sum(last - first + 1 for first, last in done)
    if count >= sum(last - first + 1 for first, last in held):
        return
    classified = f"only of masterchain {name_ranges(done)}" if done else "of no block"
    advice = f"this lake has actions {classified}; run 'tonlake rebuild actions'"
    if is_empty:
        raise NotDerived(advice)
    call.warn(advice)


def read_trace_actions(
    call: Call, traces: Sequence[Row], names: Sequence[str]
) -> tuple[dict[bytes, list[Action]], list[Row]]:
    """Return the actions of traces by trace id, and their rows; raises as ``check_classified``."""
    found: dict[bytes, list[Action]] = {row["trace_id"]: [] for row in traces}
    if not traces:
        return found, []
    supported = sorted(choose_types(call, names))
    rows = call.reader.rows(
        "v3/actions",
        trace_ids=list(found),
        start_lt=min(row["end_lt"] for row in traces),
        end_lt=max(row["end_lt"] for row in traces),
        types=supported,
        hidden_under=supported,
        limit=_NO_LIMIT,
    )
    rows.sort(key=itemgetter("start_lt", "end_lt", "action_id"))
    check_classified(call, is_empty=not rows)
    for row in rows:
        found[row["trace_id"]].append(render_action(row))
    return found, rows


class ActionsQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of actions, combined by AND; ``action_id`` excludes the others."""

    account: OneAddress = None
    tx_hash: Hashes = ()
    msg_hash: Hashes = ()
    action_id: Hashes = ()
    trace_id: Hashes = ()
    mc_seqno: Int32 = None
    action_type: TypeNames = ()
    exclude_action_type: TypeNames = ()
    supported_action_types: Texts = ()
    include_accounts: Flag = None
    include_transactions: Flag = None
    cursor: Annotated[TraceCursor | None, _convert_cursor(2)] = None


class Actions(Described):
    """A page of actions, and the addresses in them."""

    actions: list[Action]


def get_actions(call: Call, query: ActionsQuery) -> Actions:
    """List actions of complete traces, latest trace first."""
    rows = _find_actions(call, query)
    if len(rows) == query.limit:
        last, by = rows[-1], "utime" if query.by_time else "lt"
        ends = last[f"trace_end_{by}"], last["trace_id"], last[f"end_{by}"], last["action_id"]
        call.headers["X-Tonlake-Cursor"] = str(TraceCursor(*ends))
    actions = [render_action(row) for row in rows]
    if query.include_accounts:
        for action, row in zip(actions, rows, strict=True):
            action.accounts = row["accounts"]
    if query.include_transactions:
        _add_transactions(call, actions, rows)
    return Actions(actions, **describe(call, list_action_addresses(rows)))


def list_action_addresses(rows: Iterable[Row]) -> set[Address]:
    """Return the addresses in actions."""
    texts: set[str | None] = set()
    for row in rows:
        texts.update(row["accounts"], QUOTED_ADDRESS.findall(row["details"] or ""))
        texts.update(row[name] for name in _ADDRESS_COLUMNS)
    found = set()
    for text in texts:
        if text is None or ":" not in text:
            continue  # a public key, or a hash of another chain
        with suppress(AddressInvalid):
            found.add(parse_address(text))
    return found


def _add_transactions(call: Call, actions: list[Action], rows: list[Row]) -> None:
    """Add ``transactions_full`` to actions."""
    hashes = sorted({tx_hash for row in rows for tx_hash in row["tx_hashes"]})
    most = PAGE_TRANSACTIONS
    if len(hashes) > most:
        raise RequestInvalid(
            f"these actions have {len(hashes)} transactions, more than {most}: ask for fewer"
        )
    page = answer_transactions(call, call.reader.rows("v3/transaction_keys_by_hash", hashes=hashes))
    known = {transaction.hash: transaction for transaction in page.transactions}
    for action in actions:
        action.transactions_full = [known[each] for each in action.transactions if each in known]


def _find_actions(call: Call, query: ActionsQuery) -> list[Row]:
    for name in (*query.action_type, *query.exclude_action_type):
        if _TYPE_NAME.fullmatch(name) is None:
            raise RequestInvalid("action_type contains invalid characters")
    check_mc_seqno(call.reader, query.mc_seqno)
    reader, rows = call.reader, _ask_actions(call, query)
    check_classified(call, is_empty=not rows)
    if not rows:
        is_open = query.mc_seqno is None and query.cursor is None
        if is_open and (unique := list(dict.fromkeys(query.trace_id))):
            # Traces that the lake has completely have no other actions.
            found = reader.rows("v3/traces_by_id", trace_ids=unique, limit=len(unique))
            is_open = [row["state"] for row in found] != ["complete"] * len(unique)
        query.check_covered(reader, may_lie_in_gap=is_open)
    return rows


def _ask_actions(call: Call, query: ActionsQuery) -> list[Row]:
    reader = call.reader
    supported = choose_types(call, query.supported_action_types)
    after = query.cursor
    filters: Row = {
        "types": sorted(query.action_type or supported),
        "excluded": list(query.exclude_action_type),
        "hidden_under": sorted(supported),
        "by_time": query.by_time,
        "after_end": after and after.trace_end,
        "after_trace": after and after.trace_id,
        "after_action": after and after.end,
        "after_id": after and after.action_id,
        **query.filters(),
    }
    if query.action_id:
        span = dict.fromkeys(("start_utime", "end_utime", "start_lt", "end_lt"))
        filters |= {"types": [], "excluded": [], "hidden_under": [], **span}
        return reader.rows("v3/actions", action_ids=list(query.action_id), **filters)
    filters["mc_seqno"] = query.mc_seqno
    named = query.trace_id or query.tx_hash or query.msg_hash
    if query.account is not None and not named:
        return _find_account_actions(reader, query.account, filters)
    if named:
        ends = _list_ends(reader, query.msg_hash)
        if query.msg_hash and not ends:
            return []
        trace_ids = list(query.trace_id)
        if not trace_ids:
            trace_ids = find_trace_ids(reader, tx_hashes=query.tx_hash or ends)
        if not trace_ids:
            return []
        filters |= {"trace_ids": trace_ids, "tx_hashes": list(query.tx_hash), "end_hashes": ends}
        filters |= _narrow_ends(reader, query, trace_ids)
    if query.account is not None:
        filters["account"] = render_raw(query.account.workchain, query.account.account)
    return reader.rows("v3/actions", **filters)


def _find_account_actions(reader: Reader, address: Address, filters: Row) -> list[Row]:
    """Return a page of an account's actions: first the keys, then their rows of ``actions``."""
    keys = reader.rows(
        "v3/action_keys_of_account", workchain=address.workchain, account=address.account, **filters
    )
    if not keys:
        return []
    rows = reader.rows(
        "v3/actions_by_key",
        mc_seqnos=sorted({key["mc_seqno"] for key in keys}),
        trace_ends=sorted({key["trace_end_lt"] for key in keys}),
        action_ids=[key["action_id"] for key in keys],
    )
    by_key = {_key_of(row): row for row in rows}
    return [by_key[key] for key in map(_key_of, keys) if key in by_key]


_key_of = itemgetter("trace_end_lt", "trace_id", "action_id")


def _narrow_ends(reader: Reader, query: ActionsQuery, trace_ids: Sequence[bytes]) -> Row:
    """Return bounds of trace ends, so that only the files of these traces are read."""
    unique = list(dict.fromkeys(trace_ids))
    traces = reader.rows("v3/traces_by_id", trace_ids=unique, limit=len(unique))
    if len(traces) < len(unique):
        return {}
    ends = [row["end_lt"] for row in traces]
    first, last = query.start_lt, query.end_lt
    return {
        "start_lt": min(ends) if first is None else max(first, min(ends)),
        "end_lt": max(ends) if last is None else min(last, max(ends)),
    }


def _list_ends(reader: Reader, msg_hashes: Sequence[bytes]) -> list[bytes]:
    """Return the transactions that sent or received the messages."""
    if not msg_hashes:
        return []
    found = reader.rows("v3/transactions_of_messages", msg_hashes=list(msg_hashes))
    return [row["tx_hash"] for row in found]


class TracesQuery(SpanPage, frozen=True, kw_only=True):
    """Filters of traces, combined by AND; the first four exclude each other."""

    account: OneAddress = None
    trace_id: Hashes = ()
    tx_hash: Hashes = ()
    msg_hash: Hashes = ()
    mc_seqno: Int32 = None
    include_actions: Flag = None
    supported_action_types: Texts = ()
    cursor: Annotated[TraceCursor | None, _convert_cursor(1)] = None


def get_traces(call: Call, query: TracesQuery) -> Traces:
    """List traces with their transactions, latest end first."""
    page = _answer(call, query, with_actions=bool(query.include_actions))
    return Traces(page.traces, **describe(call, page.named))


def answer_traces(call: Call, query: TracesQuery) -> Traces:
    """Return the same as ``get_traces``, with transactions as structs."""
    return read_sent(get_traces(call, query))


def get_events(call: Call, query: TracesQuery) -> Events:
    """List traces with actions (former name of /traces)."""
    page = _answer(call, query, with_actions=True)
    return Events(page.traces, **describe(call, page.named))


def _answer(call: Call, query: TracesQuery, *, with_actions: bool) -> TracePage:
    rows = _find_traces(call, query)
    if len(rows) == query.limit:
        end = rows[-1]["end_utime" if query.by_time else "end_lt"]
        call.headers["X-Tonlake-Cursor"] = str(TraceCursor(end, rows[-1]["trace_id"]))
    page = write_page(call, rows, _read_members(call, rows))
    if with_actions:
        actions, acted = read_trace_actions(call, rows, query.supported_action_types)
        for trace, row in zip(page.traces, rows, strict=True):
            trace.actions = actions[row["trace_id"]]
        page.named.update(list_action_addresses(acted))
    return page


def _find_traces(call: Call, query: TracesQuery) -> list[Row]:
    chosen = [query.account, query.trace_id, query.tx_hash, query.msg_hash]
    if sum(map(bool, chosen)) > 1:
        raise RequestInvalid("only one of account, trace_id, tx_hash, msg_hash should be specified")
    check_mc_seqno(call.reader, query.mc_seqno)
    rows = _ask_traces(call, query)
    if not rows:
        is_open = query.mc_seqno is None and query.cursor is None
        query.check_covered(call.reader, may_lie_in_gap=is_open)
    return rows


def _ask_traces(call: Call, query: TracesQuery) -> list[Row]:
    reader = call.reader
    filters = {
        "mc_seqno": query.mc_seqno,
        "by_time": query.by_time,
        "after_end": query.cursor and query.cursor.trace_end,
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
    """Return the transactions of each trace that is not too large, by trace id."""
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
    operation("/actions", ActionsQuery, get_actions),
    operation("/traces", TracesQuery, get_traces),
    operation("/events", TracesQuery, get_events),
]
